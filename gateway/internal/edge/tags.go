package edge

import (
	"net/http"
	"strings"
)

// A compressed answer is another representation, so it has another entity tag
// (RFC 9110, 8.8.3.3): that of the plain answer with tagSuffix and the name of
// the encoding.
const tagSuffix = "--"

// encodings are the encodings that the edge can use.
var encodings = []string{"gzip", "zstd"}

var tagSuffixes = strings.NewReplacer(tagSuffix+`gzip"`, `"`, tagSuffix+`zstd"`, `"`)

// removeTagSuffixes turns the entity tags of compressed answers in a request
// into those of plain answers, the only ones that the services know.
func removeTagSuffixes(header http.Header) {
	for _, name := range []string{"If-Match", "If-None-Match"} {
		for i, tags := range header[name] {
			header[name][i] = tagSuffixes.Replace(tags)
		}
	}
}

// notModified gives a 304 answer the entity tag that the client has, if that is
// the tag of a compressed answer (RFC 9110, 15.4.5).
type notModified struct {
	http.ResponseWriter
	sent string // the client's If-None-Match
}

// WriteHeader implements http.ResponseWriter.
func (w *notModified) WriteHeader(status int) {
	if tag := w.Header().Get("ETag"); status == http.StatusNotModified && tag != "" {
		for _, encoding := range encodings {
			compressed := strings.TrimSuffix(tag, `"`) + tagSuffix + encoding + `"`
			if strings.Contains(w.sent, compressed) {
				w.Header().Set("ETag", compressed)
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *notModified) Unwrap() http.ResponseWriter { return w.ResponseWriter }
