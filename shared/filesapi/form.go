package filesapi

import (
	"mime"
	"net/http"
)

// FormBoundary returns the boundary of a body that is a form that may have a file
// (multipart/form-data). A form without a boundary is none.
func FormBoundary(h http.Header) (boundary string, isForm bool) {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	boundary = params["boundary"]
	return boundary, err == nil && media == "multipart/form-data" && boundary != ""
}
