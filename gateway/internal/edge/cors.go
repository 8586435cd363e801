package edge

import (
	"net/http"
	"slices"
	"strings"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/httpserver"
)

// The methods and headers that web pages of other origins may send, by the CORS
// protocol (Fetch standard, 3.2).
const (
	corsMethods = "GET, HEAD, POST, PATCH, PUT, DELETE"
	corsRequest = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, " +
		"X-Access-Token, X-Request-ID"
	corsMaxAge = "86400" // seconds for which a browser may cache the permission
)

// corsAnswer lists the answer headers that a web page may read.
func corsAnswer() string {
	names := append(ratelimit.Headers(), "Accept-Ranges", "Age", "Content-Range", "Deprecation", "ETag", "Link",
		"Location", "Retry-After", "Sunset",
		httpserver.IgnoredHeader, httpserver.RequestIDHeader, httpserver.TraceIDHeader)
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// cors answers browsers that ask whether a web page may use the API. Credentials
// are in headers, not in cookies, so a page of any origin has no more rights than
// any other program.
type cors struct {
	origins []string
	answers string // corsAnswer
}

func newCORS(origins []string) cors { return cors{origins, corsAnswer()} }

// answer sets the CORS headers. done is true if the request was a preflight, and
// has its whole answer.
func (p cors) answer(header http.Header, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	switch {
	case slices.Contains(p.origins, "*"):
		header.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(p.origins, origin):
		header.Set("Access-Control-Allow-Origin", origin)
	default:
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
