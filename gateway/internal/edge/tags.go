package edge

import (
	"net/http"
	"strings"
)

// tagSuffix is the beginning of the text that a compressed answer adds to its entity tag. A compressed answer is a
// different representation, so it needs its own entity tag (RFC 9110, 8.8.3.3). Its tag is the tag of the plain
// answer, tagSuffix, and the name of the encoding.
const tagSuffix = "--"

// encodings are the encodings that the edge can use.
var encodings = []string{"gzip", "zstd"}

var tagSuffixes = strings.NewReplacer(tagSuffix+`gzip"`, `"`, tagSuffix+`zstd"`, `"`)

// removeTagSuffixes replaces the entity tags of compressed answers in a request by the tags of the plain
// answers, because the services know only the tags of plain answers.
func removeTagSuffixes(header http.Header) {
	for _, name := range []string{"If-Match", "If-None-Match"} {
		for i, tags := range header[name] {
			header[name][i] = tagSuffixes.Replace(tags)
		}
	}
}

// notModified changes the entity tag of a 304 answer. If the client has sent the tag of a compressed answer, the
// 304 answer gets this tag (RFC 9110, 15.4.5).
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
