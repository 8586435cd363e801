package edge

import (
	"net/http"
	"slices"
	"strings"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/httpserver"
)

// The methods and headers that web pages of other origins may send, and the time for which browsers may
// remember this (Fetch standard, 3.2).
const (
	corsMethods = "GET, HEAD, POST, PATCH, PUT, DELETE"
	corsRequest = "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, " +
		"Last-Event-ID, Prefer, Range, Registry-Reference, X-Access-Token, X-Request-ID"
	corsMaxAge = "86400" // in seconds
)

// corsAnswer returns the names of the answer headers that a web page may read.
func corsAnswer() string {
	names := append(ratelimit.Headers(), "Accept-Encoding", "Accept-Ranges", "Age", "Allow", "Content-Disposition",
		"Content-Encoding", "Content-Location", "Content-Range", "Deprecation", "ETag", "Link", "Location", "Retry-After",
		"Sunset", "Vary", "WWW-Authenticate", "X-Content-Type-Options",
		httpserver.IgnoredHeader, httpserver.UncheckedHeader, httpserver.TotalHeader, httpserver.RequestIDHeader,
		httpserver.TraceIDHeader)
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// cors answers browsers that ask whether a web page may use the API. Credentials are sent in headers, not in
// cookies. So a page of any origin has no more rights than any other program.
type cors struct {
	origins []string
	answers string // the result of corsAnswer
}

func newCORS(origins []string) cors { return cors{origins, corsAnswer()} }

// allow sets the header that lets pages of an origin read an answer. It returns false if these pages are not allowed
// to read the answer, or if origin is "".
func (p cors) allow(header http.Header, origin string) bool {
	switch {
	case origin == "":
		return false
	case slices.Contains(p.origins, "*"):
		header.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(p.origins, origin):
		header.Set("Access-Control-Allow-Origin", origin)
	default:
		return false
	}
	return true
}

// RefusalHeaders returns a function for refusals that the HTTP server sends itself, before it calls a handler.
// The function returns the headers of a refusal for an Origin. corsOrigins are the CORSOrigins of Config.
func RefusalHeaders(corsOrigins []string) func(origin string) http.Header {
	p := newCORS(corsOrigins)
	return func(origin string) http.Header {
		header := http.Header{"Vary": {vary[0]}}
		if p.allow(header, origin) {
			header.Set("Access-Control-Expose-Headers", p.answers)
		}
		return header
	}
}

// answer sets the CORS headers. If the request is a preflight, the answer to it is then complete, and the result `done`
// is true.
func (p cors) answer(header http.Header, r *http.Request) (done bool) {
	if !p.allow(header, r.Header.Get("Origin")) {
		return false
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		header.Set("Access-Control-Expose-Headers", p.answers)
		return false
	}
	header.Set("Access-Control-Allow-Methods", corsMethods)
	header.Set("Access-Control-Allow-Headers", corsRequest)
	header.Set("Access-Control-Max-Age", corsMaxAge)
	return true
}
