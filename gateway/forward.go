package gateway

import (
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// forward sends the request to the asset service and copies its answer to the
// client. If the answer breaks off, forward ends the client's connection.
func (s *Server) forward(v routes.Version) gin.HandlerFunc {
	return s.forwardTo(s.assets, func(c *gin.Context) string { return upstreamPath(c, v) })
}

// forwardSearch is forward for the search service.
func (s *Server) forwardSearch(v routes.Version) gin.HandlerFunc {
	return s.forwardTo(s.search, func(c *gin.Context) string { return upstreamPath(c, v) })
}

// forwardTo is forward for a service, and for the path that a function gives.
func (s *Server) forwardTo(to *proxy.Upstream, path func(*gin.Context) string) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		r := c.Request
		if isRead(r) || r.Method == http.MethodDelete { // a body has no meaning there
			r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
		}
		if r.Method != http.MethodPost || !isList(c) && !strings.HasSuffix(c.FullPath(), routes.Webhooks) {
			delete(r.Header, idempotencyKey) // has no meaning there, and would make the transport retry the request
		}
		seed, err := s.seed(r)
		if err != nil {
			return err
		}
		err = to.Forward(c.Writer, r, proxy.Request{
			Path:    path(c),
			Caller:  caller(c),
			Client:  c.GetHeader(httpserver.ClientHeader),
			BaseURL: s.baseURL(r),
			Seed:    seed,
		})
		if errors.Is(err, proxy.ErrCut) {
			_ = c.Error(err)            // for the log; gin returns its argument
			panic(http.ErrAbortHandler) // ends the connection
		}
		return err
	})
}

// require refuses a request that fails a check. A missing asset wins over a
// wrong content type and a missing key (docs/contract.md, "Order of checks").
// The gateway stores no assets, so before these two refusals, and only then, it
// asks the asset service whether the asset exists.
func (s *Server) require(v routes.Version, check func(*gin.Context) error) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		refusal := check(c)
		kind := fault.KindOf(refusal)
		if c.Param("id") == "" || kind != fault.UnsupportedMedia && kind != fault.Unauthorized {
			return refusal
		}
		missing := s.assets.Missing(c.Request.Context(), readable(upstreamPath(c, v)))
		if fault.KindOf(missing) == fault.NotFound {
			return missing
		}
		return refusal
	})
}

// idempotencyKey is the header by which a client may repeat a creation
// (docs/contract.md, "Idempotency").
const idempotencyKey = "Idempotency-Key"

// seed returns the secret from which the asset service makes the id and the
// tokens of a repeatable creation. It is "" without an idempotency key. Only the
// gateway can make it, because only the gateway sees the API key.
func (s *Server) seed(r *http.Request) (string, error) {
	name := r.Header.Get(idempotencyKey)
	if name == "" {
		return "", nil
	}
	return apikey.Seeds(r.Header, name, s.config.Secrets)
}

// upstreamPath returns the path to ask the asset service for.
func upstreamPath(c *gin.Context, v routes.Version) string {
	return routes.Prefix(v.Target) + strings.TrimPrefix(c.Request.URL.Path, v.Prefix())
}

// baseURL returns the public address of the registry, for links in answers.
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
