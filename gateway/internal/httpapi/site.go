package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/routes"
)

// routeSite adds GET / and, if there is a search service, the pages for people (docs/contract.md, "Site"). With
// these pages, GET / answers browsers with the first page. Programs always get the welcome answer.
func (a *API) routeSite(engine *gin.Engine) {
	welcome := a.pipeline(route{class: routes.Read, answer: a.welcome})
	if a.config.Search == nil {
		engine.Match(reading, "/", welcome)
		return
	}
	page := func(class routes.Class) gin.HandlerFunc {
		return a.pipeline(route{class: class, answer: a.forwardTo(a.config.Search, samePath), places: a.places.search})
	}
	first := page(routes.List)
	engine.Match(reading, "/", func(c *gin.Context) {
		c.Writer.Header().Add("Vary", "Accept, Accept-Language")
		if wantsPage(c.Request) {
			first(c)
			return
		}
		welcome(c)
	})
	for _, r := range routes.Site() {
		answer := page(r.Class)
		if r.Pattern == routes.AnyLanguage || r.Pattern == routes.Data {
			engine.Handle(r.Method, r.Pattern, func(c *gin.Context) {
				c.Writer.Header().Add("Vary", "Accept-Language")
				answer(c)
			})
			continue
		}
		engine.Handle(r.Method, r.Pattern, answer)
	}
}

// wantsPage reports whether a request names text/html in Accept, as browsers do. Programs name another type, or
// accept any type.
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
