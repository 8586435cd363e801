package filesapi

import (
	"mime"
	"net/http"
)

// FormBoundary returns the boundary of a body that is a form in which files can be sent (multipart/form-data).
// isForm is false if the header has no boundary.
func FormBoundary(h http.Header) (boundary string, isForm bool) {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	boundary = params["boundary"]
	return boundary, err == nil && media == "multipart/form-data" && boundary != ""
}
