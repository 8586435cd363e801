package gateway

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/gateway/internal/version"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// parts are the resources within an asset, and how one of them is changed;
// they are added to by POST (contract, section 3).
var parts = map[string][]string{
	"items":             {http.MethodPatch},
	"decisions":         {http.MethodPatch},
	"documents":         {http.MethodPatch, http.MethodPut},
	"related_processes": {http.MethodPatch, http.MethodDelete},
}

// ownership is where an asset is handed over (contract, section 6.4).
const ownership = "ownership"

// route adds every route to the engine. What a request passes is read from left
// to right; the order of refusals is that of contract section 7.
func (s *Server) route(engine *gin.Engine) {
	engine.GET("/", httpserver.Handle(s.welcome))
	engine.NoMethod(s.noMethod()...)
	for _, v := range version.Table {
		r := engine.Group("/api/"+v.Name, s.age(v), httpserver.Handle(s.stick))
		forward := s.forward(v)
		list := []gin.HandlerFunc{s.identify(readKeyShare), s.limit(ratelimit.List), s.crowd(ratelimit.List), forward}
		read := []gin.HandlerFunc{s.identify(readKeyShare), s.limit(ratelimit.Read), s.crowd(ratelimit.Read), forward}
		write := []gin.HandlerFunc{s.identify(writeKeyShare), s.lockout(ratelimit.Write), s.crowd(ratelimit.Write), s.holdBody(), s.limit(ratelimit.Write), s.refuse(v, needJSON), s.refuse(v, s.needKey), httpserver.Handle(s.readBody), forward}
		remove := []gin.HandlerFunc{s.identify(writeKeyShare), s.lockout(ratelimit.Write), s.crowd(ratelimit.Write), s.limit(ratelimit.Write), s.refuse(v, s.needKey), forward}
		kept := []gin.HandlerFunc{s.identify(writeKeyShare), s.lockout(ratelimit.Read), s.limit(ratelimit.Read), s.crowd(ratelimit.Read), s.refuse(v, s.needKey), forward}
		look := []gin.HandlerFunc{s.identify(readKeyShare), s.limit(ratelimit.Read), s.crowd(ratelimit.Read)}
		me := []gin.HandlerFunc{s.identify(writeKeyShare), httpserver.Handle(s.needKey), httpserver.Handle(s.me)}
		r.GET("/me", me...)
		r.HEAD("/me", me...)
		r.GET("/spore", append(look, s.spore(v))...)
		r.HEAD("/spore", append(look, s.spore(v))...)
		r.GET("/health", httpserver.Quiet, s.health)
		r.HEAD("/health", httpserver.Quiet, s.health)
		r.GET("/assets", list...)
		r.HEAD("/assets", list...)
		r.POST("/assets", write...)
		r.GET("/assets/:id", read...)
		r.HEAD("/assets/:id", read...)
		r.PATCH("/assets/:id", write...)
		r.PUT("/assets/:id", write...)
		r.POST("/assets/:id/"+ownership, write...)
		r.POST("/transfers", write...)
		r.GET("/transfers/:transfer", read...)
		r.HEAD("/transfers/:transfer", read...)
		r.GET("/assets/:id/revisions", kept...)
		r.HEAD("/assets/:id/revisions", kept...)
		for name, methods := range parts {
			all, one := "/assets/:id/"+name, "/assets/:id/"+name+"/:part"
			r.GET(all, read...)
			r.HEAD(all, read...)
			r.POST(all, write...)
			r.GET(one, read...)
			r.HEAD(one, read...)
			for _, method := range methods {
				if method == http.MethodDelete { // has no body: a content type means nothing there
					r.DELETE(one, remove...)
					continue
				}
				r.Handle(method, one, write...)
			}
		}
	}
	s.routes = engine.Routes()
}

// isListing tells whether a reading asks for a page of the feed.
func isListing(c *gin.Context) bool { return strings.HasSuffix(c.FullPath(), "/assets") }

func (s *Server) welcome(c *gin.Context) error {
	names := make([]string, len(version.Table))
	for i, v := range version.Table {
		names[i] = v.Name
	}
	return httpserver.JSON(c, http.StatusOK, gin.H{"name": "asset registry", "versions": names, "assets": s.baseURL(c.Request) + "/api/" + version.Current + "/assets"})
}

// refuse runs a check that a write must pass. An asset that does not exist is
// the first thing to say of any request, so before it refuses, it asks.
func (s *Server) refuse(v version.Version, check func(*gin.Context) error) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		refusal := check(c)
		kind := fault.KindOf(refusal)
		if c.Param("id") == "" || kind != fault.UnsupportedMedia && kind != fault.Unauthorized {
			return refusal
		}
		if missing := s.assets.Missing(c.Request.Context(), readable(upstreamPath(c, v))); fault.KindOf(missing) == fault.NotFound {
			return missing
		}
		return refusal
	})
}

// needJSON refuses a body of another type (interface document, Create an asset),
// and one that is compressed: it could unfold to any size.
func needJSON(c *gin.Context) error {
	refusal := &fault.Error{Kind: fault.UnsupportedMedia}
	if !isJSON(c.GetHeader("Content-Type")) {
		refusal.Details = append(refusal.Details, fault.Detail{Location: fault.Header, Name: "Content-Type",
			Description: "Content-Type header should be one of ['application/json']"})
	}
	coding := strings.Join(c.Request.Header.Values("Content-Encoding"), ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		c.Header("Accept-Encoding", "identity") // RFC 9110, 15.5.16
		refusal.Details = append(refusal.Details, fault.Detail{Location: fault.Header, Name: "Content-Encoding",
			Description: "Content-Encoding is not accepted: send the body as it is, without that header."})
	}
	if len(refusal.Details) > 0 {
		return refusal
	}
	return nil
}

// isJSON reports whether a content type is JSON's, whatever its parameters.
func isJSON(kind string) bool {
	if kind == "application/json" { // what nearly all send
		return true
	}
	media, _, err := mime.ParseMediaType(kind)
	return err == nil && media == "application/json"
}

// holdBody holds the memory of the body that will be read until the request is
// answered. It comes before the limits, so a body for which there is no room is
// not counted.
func (s *Server) holdBody() gin.HandlerFunc {
	refuse := httpserver.Handle(func(*gin.Context) error {
		return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many large requests now; repeat this one.")
	})
	return func(c *gin.Context) {
		size := s.announced(c)
		if size < 0 {
			size = s.config.MaxBody
		}
		if !s.bodies.Hold(size) {
			refuse(c)
			return
		}
		defer s.bodies.Release(size)
		c.Next()
	}
}

// readBody reads the whole body before anybody behind the edge waits for it. The
// request must have passed holdBody.
func (s *Server) readBody(c *gin.Context) error {
	r := c.Request
	if end, ok := r.Context().Deadline(); ok && r.Body != http.NoBody { // a body that trickles in holds nobody up for longer
		_ = http.NewResponseController(c.Writer).SetReadDeadline(end) // where there is no connection, there is no waiting
	}
	tooLarge := fault.New(fault.TooLarge, fault.Body, "data", "The body has more than %d bytes.", s.config.MaxBody)
	if r.ContentLength > s.config.MaxBody {
		return tooLarge
	}
	body, err := readAll(http.MaxBytesReader(c.Writer, r.Body, s.config.MaxBody), r.ContentLength)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.New(fault.Invalid, fault.Body, "data", "The body did not arrive in time.")
	}
	if err != nil {
		return fault.New(fault.Invalid, fault.Body, "data", "The body ended before it was complete.")
	}
	if r.ContentLength < 0 {
		if err := s.limitBody(c, int64(len(body))); err != nil {
			return err
		}
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return nil
}

// readAll is io.ReadAll of a body whose size may be known; -1 if it is not.
func readAll(body io.Reader, size int64) ([]byte, error) {
	if size < 0 {
		return io.ReadAll(body)
	}
	whole := make([]byte, size)
	_, err := io.ReadFull(body, whole)
	return whole, err
}

func (s *Server) forward(v version.Version) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		r := c.Request
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete { // a body means nothing there
			r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
		}
		if r.Method != http.MethodPost || !strings.HasSuffix(c.FullPath(), "/assets") {
			delete(r.Header, idempotencyKey) // means nothing there, and the transport would repeat the request
		}
		seed, err := s.seed(r)
		if err != nil {
			return err
		}
		err = s.assets.Forward(c.Writer, r, proxy.Request{
			Path:    upstreamPath(c, v),
			Caller:  caller(c),
			Client:  c.GetHeader(httpserver.ClientHeader),
			BaseURL: s.baseURL(r),
			Seed:    seed,
		})
		if errors.Is(err, proxy.ErrCut) {
			_ = c.Error(err)            // recorded for the log; gin returns what it was given
			panic(http.ErrAbortHandler) // ends the connection
		}
		return err
	})
}

// idempotencyKey is a client's name for a creation that may be repeated.
const idempotencyKey = "Idempotency-Key"

// seed returns what a creation that may be repeated is made of, "" for anything
// else. Only the edge can: nobody behind it knows API keys.
func (s *Server) seed(r *http.Request) (string, error) {
	name := r.Header.Get(idempotencyKey)
	if name == "" {
		return "", nil
	}
	return apikey.Seeds(r.Header, name, s.config.Secrets)
}

// upstreamPath is the request's path in the version that it is forwarded as.
func upstreamPath(c *gin.Context, v version.Version) string {
	return "/api/" + v.As + strings.TrimPrefix(c.Request.URL.Path, "/api/"+v.Name)
}

// baseURL is the address that the client knows the registry by.
func (s *Server) baseURL(r *http.Request) string {
	switch {
	case s.config.BaseURL != "":
		return s.config.BaseURL
	case r.TLS != nil:
		return "https://" + r.Host
	default:
		return "http://" + r.Host
	}
}
