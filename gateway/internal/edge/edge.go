// Package edge has the first handler of every public request, before the routes. It gives the request an id,
// finds the client's address, answers CORS preflights, and compresses answers to reads.
package edge

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/routes"
)

// Config configures a handler.
type Config struct {
	TrustedProxies clientaddr.Proxies // networks whose X-Forwarded-For is trusted
	CORSOrigins    []string           // origins whose web pages may use the API; "*" for all
	Encoders       *memory.Budget     // memory for compressing answers
	Places         *fair.Semaphore    // places for compressing long answers
	HSTS           time.Duration      // max-age of Strict-Transport-Security; 0: no such header
	Secure         bool               // clients use HTTPS, although perhaps not to this listener
}

// minCompressed is the least size in bytes of an answer that is compressed. A smaller answer fits into one
// network packet anyway.
const minCompressed = 1400

// gzipLevel takes 0.6 of the time of the usual level 5, and a page of assets gets 1.1 times as long.
const gzipLevel = 3

// encoderSize is how many bytes of memory the compression of one answer takes. If less memory is free, the answer is
// sent uncompressed.
const encoderSize = 1 << 20

// handler serves requests as the package comment describes.
type handler struct {
	plain    http.Handler
	compress func(http.Handler) http.HandlerFunc // makes a handler that compresses the answers of the given handler
	places   *fair.Semaphore
	encoders *memory.Budget
	proxies  clientaddr.Proxies
	cors     cors
	hsts     []string // nil: no header
	isSecure bool
}

// isLong reports whether a request may wait until the feed changes (docs/contract.md, "Streams"), or is for a
// file or a whole copy. The answer to such a request is not compressed, because this would occupy an encoder
// for too long.
func isLong(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.HasPrefix(r.URL.Path, routes.GetFile+"/") || strings.HasPrefix(r.URL.Path, routes.Data+"/") ||
		strings.Contains(accept, "event-stream") || strings.Contains(accept, "ndjson") ||
		r.Header.Get("Prefer") != "" || strings.Contains(r.URL.RawQuery, "wait=")
}

// New returns a handler in front of the given handler (next).
func New(next http.Handler, c Config) (http.Handler, error) {
	compress, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed),
		gzhttp.CompressionLevel(gzipLevel),
		gzhttp.ContentTypes([]string{
			"application/json", "application/javascript", "text/html", "application/xml", "application/atom+xml",
			"application/geo+json", "text/csv",
		}),
		gzhttp.SuffixETag(tagSuffix+"gzip"), // for zstd, gzhttp replaces gzip in this suffix
	)
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	h := handler{
		plain: next, compress: compress, places: c.Places, encoders: c.Encoders, proxies: c.TrustedProxies,
		cors: newCORS(c.CORSOrigins), isSecure: c.Secure,
	}
	if c.HSTS > 0 { // never with includeSubDomains: other hosts are not ours
		h.hsts = []string{fmt.Sprintf("max-age=%d", c.HSTS/time.Second)}
	}
	return h, nil
}

// vary has the two values of the Vary header. Before an answer that may be compressed, only the first value is set:
// gzhttp adds the second.
var vary = []string{"Authorization, Origin, X-Access-Token", "Accept-Encoding"}

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	caller, isInside := r.Header[httpserver.CallerHeader], r.RemoteAddr == "" // the site is in this process
	values := [...]string{httpserver.SanitizeExternal(r), ""}
	if isInside && caller != nil {
		r.Header[httpserver.CallerHeader] = caller
	}
	header[httpserver.RequestIDHeader] = values[0:1:1]
	header["X-Content-Type-Options"] = httpserver.NoSniff
	if h.hsts != nil && (r.TLS != nil || h.isSecure) {
		header["Strict-Transport-Security"] = h.hsts
	}
	header["Vary"] = vary[0:1:1] // limited in capacity, so that appending a value makes a copy
	if client := h.proxies.Client(r); client.IsValid() {
		values[1] = client.String()
		r.Header[httpserver.ClientHeader] = values[1:2:2]
	}
	if h.cors.answer(header, r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.Host == "" && r.ProtoAtLeast(1, 1) {
		faulthttp.Write(w, fault.New(fault.Invalid, fault.Header, "Host", "The header must name the host of the registry."))
		return
	}
	sent := r.Header.Get("If-None-Match")
	removeTagSuffixes(r.Header)
	// The answer to a write has a secret next to fields that the client chooses. If the answer were compressed,
	// its size would reveal something about the secret.
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if read && r.Header.Get("Accept-Encoding") != "" && !isLong(r) && h.encoders.Hold(encoderSize) {
		defer h.encoders.Release(encoderSize)
		if sent != "" {
			w = &notModified{w, sent}
		}
		if r.Method == http.MethodHead {
			h.serveHead(w, r)
			return
		}
		h.serveCompressed(w, r)
		return
	}
	header["Vary"] = vary
	h.plain.ServeHTTP(w, r)
}

func (h handler) serveCompressed(w http.ResponseWriter, r *http.Request) {
	t := &turns{places: h.places, memory: h.encoders, asked: r}
	h.compress(http.HandlerFunc(func(compressor http.ResponseWriter, r *http.Request) {
		u := &unpacked{compressor, t, w}
		defer u.end()
		h.plain.ServeHTTP(u, r)
	})).ServeHTTP(packed{w, t}, r)
}

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
		httpserver.IgnoredHeader, httpserver.UncheckedHeader, httpserver.TotalHeader, httpserver.InterpretedHeader,
		httpserver.RequestIDHeader, httpserver.TraceIDHeader)
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

// RefusalHeaders returns headers for refusals that the HTTP server sends itself, before it calls a handler. Pages of
// each origin may read them, because they say nothing but what is wrong with the request.
func RefusalHeaders() http.Header {
	return http.Header{
		"Vary": {vary[0]}, "Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {corsAnswer()},
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

// serveHead answers a HEAD request with the headers that the answer to GET would have, compressed or not (RFC 9110,
// 9.3.2). Gzhttp never compresses the answer to a HEAD request. For other requests, it decides by the first bytes
// of the body. So serveHead gives gzhttp a GET request, and a body if the service sets the Content-Length of a long
// answer, or only a tag, as for a large asset. Of other answers that were not made, nobody knows whether they are long.
func (h handler) serveHead(w http.ResponseWriter, r *http.Request) {
	get := *r
	get.Method = http.MethodGet
	h.compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.plain.ServeHTTP(w, r)
		length := w.Header().Get("Content-Length")
		n, _ := strconv.Atoi(length)
		if n >= minCompressed || length == "" && w.Header().Get("ETag") != "" { // a long answer that was not made
			_, _ = w.Write(blank[:])
		}
	})).ServeHTTP(bodiless{w}, &get)
}

// blank is the body that serveHead gives to gzhttp.
var blank [minCompressed]byte

// bodiless sends the headers of an answer, without the body.
type bodiless struct{ http.ResponseWriter }

func (bodiless) Write(p []byte) (int, error) { return len(p), nil }

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w bodiless) Unwrap() http.ResponseWriter { return w.ResponseWriter }
