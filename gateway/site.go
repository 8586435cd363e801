package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// routeSite adds the pages for people, if there is a search service, which answers them
// (docs/contract.md, "Site"). GET / has the first page for browsers, and the welcome answer
// for programs.
func (s *Server) routeSite(engine *gin.Engine) {
	welcome := httpserver.Handle(s.welcome)
	if s.search == nil {
		engine.Match(reading, "/", welcome)
		return
	}
	forPrograms := func(c *gin.Context) {
		c.Writer.Header().Add("Vary", "Accept, Accept-Language")
		if !wantsPage(c.Request) {
			welcome(c)
			c.Abort()
		}
	}
	engine.Match(reading, "/", append([]gin.HandlerFunc{forPrograms}, s.sitePipeline(routes.List)...)...)
	for _, r := range routes.Site() {
		engine.Handle(r.Method, r.Pattern, s.sitePipeline(r.Class)...)
	}
}

// sitePipeline returns the handlers of a page. The limits are those of readings.
func (s *Server) sitePipeline(class routes.Class) []gin.HandlerFunc {
	return []gin.HandlerFunc{
		s.identify(s.config.Timeout / readKeyShare), s.limit(class), s.bound(class),
		s.forwardTo(s.search, func(c *gin.Context) string { return c.Request.URL.Path }),
	}
}

// wantsPage tells whether a request names text/html in Accept, as browsers do. Programs name
// another type, or any.
func wantsPage(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header["Accept"], ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "text/html") {
			continue
		}
		_, weight, given := strings.Cut(params, "q=")
		q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		return !given || err == nil && q > 0
	}
	return false
}
