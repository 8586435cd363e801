// Package edge has the first handler of every public request, before the routes. It gives the request an id,
// finds the client's address, answers CORS preflights, and compresses answers to reads.
package edge

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

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
