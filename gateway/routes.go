package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/docspage"
	"asset-registry/gateway/internal/openapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
	"asset-registry/shared/static"
)

// route adds every route to the engine: those of package routes in each
// version, the welcome answer, the site, the documentation page and the public log.
func (s *Server) route(engine *gin.Engine) {
	s.routeSite(engine)
	s.routeDocs(engine)
	s.routeLog(engine)
	engine.NoMethod(s.noMethod()...)
	for _, v := range routes.Versions() {
		group := engine.Group(v.Prefix(), s.lifecycle(v), httpserver.Handle(s.checkCookie))
		for _, r := range routes.All() {
			if !v.Has(r) || r.AtSearch && s.search == nil {
				continue
			}
			if s.config.Mirror != nil && isForOrigin(r) {
				group.Handle(r.Method, r.Pattern, s.toOrigin()...)
				continue
			}
			if r.AtGateway {
				group.Handle(r.Method, r.Pattern, s.ownPipeline(v, r)...)
				continue
			}
			group.Handle(r.Method, r.Pattern, s.pipeline(v, r)...)
		}
	}
}

// pipeline returns the handlers of a route that the asset service answers. A
// request passes them from first to last, which decides which refusal wins
// (docs/contract.md, "Order of checks").
func (s *Server) pipeline(v routes.Version, r routes.Route) []gin.HandlerFunc {
	switch {
	case r.Class == routes.Write && r.Method == http.MethodDelete: // has no body, so no content type to check
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / writeKeyShare), s.lockout(r.Class), s.bound(r.Class), s.limit(r.Class),
			s.require(v, s.needKey), s.forward(v),
		}
	case r.Class == routes.Write:
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / writeKeyShare), s.lockout(r.Class), s.bound(r.Class),
			s.reserveBody(), s.limit(r.Class),
			s.require(v, needJSON), s.require(v, s.needKey), httpserver.Handle(s.readBody), s.forward(v),
		}
	case r.AtSearch:
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / readKeyShare), s.limit(r.Class), s.bound(r.Class), s.forwardSearch(v),
		}
	case r.Key:
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / writeKeyShare), s.lockout(r.Class), s.limit(r.Class), s.bound(r.Class),
			s.require(v, s.needKey), s.forward(v),
		}
	case r.Class == routes.List:
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / readKeyShare), s.limit(r.Class), s.live(v), s.bound(r.Class), s.forward(v),
		}
	case r.Pattern == routes.Segment:
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / readKeyShare), s.limit(r.Class), s.shareSegments, s.bound(r.Class), s.forward(v),
		}
	case r.Pattern == "/assets/:id":
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / readKeyShare), s.limit(r.Class), s.bound(r.Class), s.recall(v), s.forward(v),
		}
	default:
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / readKeyShare), s.limit(r.Class), s.bound(r.Class), s.forward(v),
		}
	}
}

// ownPipeline returns the handlers of a route that the gateway answers itself.
func (s *Server) ownPipeline(v routes.Version, r routes.Route) []gin.HandlerFunc {
	switch r.Pattern {
	case "/me":
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / writeKeyShare), httpserver.Handle(s.needKey), httpserver.Handle(s.me),
		}
	case "/spore":
		return []gin.HandlerFunc{
			s.identify(s.config.Timeout / readKeyShare), s.limit(r.Class), s.bound(r.Class), s.spore(v),
		}
	case "/openapi.json":
		return s.document(r, static.New("application/json", "no-cache", openapi.JSON(v.Target)))
	case "/openapi.yaml":
		return s.document(r, static.New("application/yaml", "no-cache", openapi.YAML(v.Target)))
	case "/health":
		return []gin.HandlerFunc{httpserver.Quiet, s.answerHealth}
	default:
		panic("gateway: no handler for " + r.Method + " " + r.Pattern)
	}
}

// routeLog adds the public log, which the asset service answers. The rate limits count
// a request for any part of it as a read (docs/log.md, "Overview").
func (s *Server) routeLog(engine *gin.Engine) {
	engine.Match(reading, "/log/*path", s.identify(s.config.Timeout/readKeyShare), s.limit(routes.Read),
		s.bound(routes.Read), s.forwardTo(s.assets, func(c *gin.Context) string { return c.Request.URL.Path }))
}

// document returns the handlers of a route that answers with a file.
func (s *Server) document(r routes.Route, f *static.File) []gin.HandlerFunc {
	return []gin.HandlerFunc{
		s.identify(s.config.Timeout / readKeyShare), s.limit(r.Class), s.bound(r.Class), gin.WrapH(f),
	}
}

// isList tells whether the request's path is that of the feed, /assets.
func isList(c *gin.Context) bool { return strings.HasSuffix(c.FullPath(), "/assets") }

// isRead tells whether the request's method reads.
func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// reading are the methods of a route that only answers.
var reading = []string{http.MethodGet, http.MethodHead}

// welcome answers GET / with the versions and the addresses of the feed, the
// documentation page and the OpenAPI document. The header Link names the last
// two (RFC 8631).
func (s *Server) welcome(c *gin.Context) error {
	var names []string
	for _, v := range routes.Versions() {
		names = append(names, v.Name)
	}
	base := s.baseURL(c.Request)
	docs, openAPI := base+docspage.Root, base+routes.Prefix(routes.Current)+"/openapi.json"
	c.Header("Link", fmt.Sprintf(
		`<%s>; rel="service-desc"; type="application/json", <%s>; rel="service-doc"; type="text/html"`, openAPI, docs))
	answer := gin.H{
		"name":     "asset registry",
		"versions": names,
		"assets":   base + routes.Prefix(routes.Current) + "/assets",
		"docs":     docs,
		"openapi":  openAPI,
	}
	if s.config.Mirror != nil {
		answer["origin"] = s.config.Mirror.Origin
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}
