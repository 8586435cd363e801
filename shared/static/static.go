// Package static serves files that are part of the program. It compresses each file only once, at the first compressed
// answer. Otherwise anonymous clients could make the program compress the file for each request.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"asset-registry/shared/httpserver"
)

// File is one file.
type File struct {
	contentType string
	cache       string
	tag         string // without quotes
	plain       []byte
	compressed  func() []byte
	pace        httpserver.Pace
}

// New returns a file. Every answer has these values of Content-Type and
// Cache-Control. The entity tag is derived from the content.
func New(contentType, cache string, content []byte) *File {
	sum := sha256.Sum256(content)
	return &File{
		contentType: contentType, cache: cache, tag: hex.EncodeToString(sum[:8]), plain: content,
		compressed: sync.OnceValue(func() []byte { return compress(content) }), pace: httpserver.DefaultPace,
	}
}

// NewYAML returns a file that has a JSON document as YAML. It makes the YAML at the first request, because that takes
// some tenths of a second.
func NewYAML(cache string, document []byte) http.Handler {
	made := sync.OnceValue(func() *File {
		text, err := yaml.JSONToYAML(document)
		if err != nil {
			panic(fmt.Sprintf("turn a document of the program into YAML: %v", err))
		}
		return New("application/yaml", cache, text)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { made().ServeHTTP(w, r) })
}

func compress(content []byte) []byte {
	var to bytes.Buffer
	w, _ := gzip.NewWriterLevel(&to, gzip.BestCompression) // fails only for an unknown level
	_, _ = w.Write(content)                                // writing to a buffer never fails
	_ = w.Close()
	return to.Bytes()
}

// Tag returns the file's entity tag without quotes. It changes with the content.
func (f *File) Tag() string { return f.tag }

// ServeHTTP answers GET and HEAD. It answers 304 if the client has the file, and
// cuts off a client that is slower than the pace of large answers.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", f.cache)
	content, tag := f.plain, f.tag
	if acceptsGzip(r.Header["Accept-Encoding"]) {
		content, tag = f.compressed(), f.tag+"--gzip"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", `"`+tag+`"`)
	if httpserver.HasTag(r.Header["If-None-Match"], `"`+f.tag+`"`) {
		h.Del("Content-Type")
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = httpserver.NewSender(w, f.pace).Write(content) // an error means that the client has left, or is too slow
	}
}

// acceptsGzip reports whether an Accept-Encoding names gzip with a weight above 0 (RFC 9110, 12.5.3).
func acceptsGzip(sent []string) bool {
	for coding := range strings.SplitSeq(strings.Join(sent, ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, q, given := strings.Cut(weight, "=")
			value, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return !given || err == nil && value > 0
		}
	}
	return false
}
