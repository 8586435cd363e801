package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"asset-registry/shared/clientaddr"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
)

// compressFrom is the size of an answer from which compressing it is worth it:
// what a packet of the network holds.
const compressFrom = 1400

// edge is what stands before the engine: it takes away what only our own
// services may say, names the request, tells whose it is, answers browsers'
// questions for permission, and compresses readings.
type edge struct {
	next       http.Handler
	compressed http.Handler   // next, with its answers compressed
	encoders   *memory.Budget // for their memory
	proxies    clientaddr.Proxies
	origins    []string
}

func newEdge(next http.Handler, c Config, encoders *memory.Budget) (http.Handler, error) {
	// A compressed answer is another representation, and so has another entity
	// tag (RFC 9110, 8.8.3.3): the plain one with this ending.
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(compressFrom), gzhttp.ContentTypes([]string{"application/json", "application/javascript"}), gzhttp.SuffixETag(tagEnding+"gzip"))
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	return edge{next, compress(next), encoders, c.TrustedProxies, c.Manners.CORSOrigins}, nil
}

// encoderSize is how much memory compressing an answer takes, in bytes. Where
// there is no room for it, an answer is sent as it is.
const encoderSize = 1 << 20

const tagEnding = "--"

// plainTags makes the tags of compressed answers those of plain ones, which is
// what services know.
var plainTags = strings.NewReplacer(tagEnding+`gzip"`, `"`, tagEnding+`zstd"`, `"`)

func (e edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set(httpserver.RequestIDHeader, httpserver.SanitizeExternal(r))
	header.Set("X-Content-Type-Options", "nosniff")
	header["Vary"] = []string{"Authorization, Origin, X-Access-Token"}
	if client := e.proxies.Client(r); client.IsValid() {
		r.Header.Set(httpserver.ClientHeader, client.String())
	}
	if e.share(header, r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	had := r.Header.Get("If-None-Match")
	for _, name := range []string{"If-Match", "If-None-Match"} {
		for i, tags := range r.Header[name] {
			r.Header[name][i] = plainTags.Replace(tags)
		}
	}
	// Writes' answers hold secrets beside what the client sent: their size must
	// tell nothing.
	if r.Header.Get("Accept-Encoding") != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && e.encoders.Hold(encoderSize) {
		defer e.encoders.Release(encoderSize)
		if had != "" {
			w = &unchanged{w, had}
		}
		e.compressed.ServeHTTP(w, r)
		return
	}
	header.Add("Vary", "Accept-Encoding")
	e.next.ServeHTTP(w, r)
}

// unchanged gives an answer without a body the tag that the client has, where
// that is of a compressed one (RFC 9110, 15.4.5).
type unchanged struct {
	http.ResponseWriter
	had string // If-None-Match
}

func (w *unchanged) WriteHeader(status int) {
	if tag := w.Header().Get("ETag"); status == http.StatusNotModified && tag != "" {
		for _, ending := range []string{"gzip", "zstd"} {
			if compressed := strings.TrimSuffix(tag, `"`) + tagEnding + ending + `"`; strings.Contains(w.had, compressed) {
				w.Header().Set("ETag", compressed)
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns what is behind (http.ResponseController).
func (w *unchanged) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// What pages of other origins may send and see, by the CORS protocol (Fetch
// standard, 3.2).
const (
	sharedMethods  = "GET, HEAD, POST, PATCH, PUT, DELETE"
	sharedRequest  = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Access-Token, X-Request-ID"
	sharedResponse = "Deprecation, ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After, Sunset, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-ID, X-Trace-ID"
	sharedFor      = "86400" // seconds that a permission is good for
)

// share tells a browser what a page may do here, and whether that was all it
// asked. Credentials are no cookies here, so any origin may do as well as a
// program.
func (e edge) share(header http.Header, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	switch {
	case slices.Contains(e.origins, "*"):
		header.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(e.origins, origin):
		header.Set("Access-Control-Allow-Origin", origin)
	default:
		return false
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		header.Set("Access-Control-Expose-Headers", sharedResponse)
		return false
	}
	header.Set("Access-Control-Allow-Methods", sharedMethods)
	header.Set("Access-Control-Allow-Headers", sharedRequest)
	header.Set("Access-Control-Max-Age", sharedFor)
	return true
}
