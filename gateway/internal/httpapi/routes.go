package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/docspage"
	"asset-registry/gateway/internal/openapi"
	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
	"asset-registry/shared/static"
)

// Route adds every route to the engine: the routes of package routes in each version, the welcome answer, the
// site, the documentation page, the public log, files and whole copies.
func (a *API) Route(engine *gin.Engine) {
	a.routeSite(engine)
	a.routeDocs(engine)
	a.routeLog(engine)
	a.routeFiles(engine)
	a.routeCopies(engine)
	a.routeCatalog(engine)
	engine.NoRoute(a.stray())
	engine.NoMethod(a.noMethod())
	for _, v := range routes.Versions() {
		for _, r := range routes.All() {
			if v.Has(r) && a.has(r) {
				engine.Handle(r.Method, v.Prefix()+r.Pattern, a.orForm(v, r, a.pipeline(a.routeOf(v, r))))
			}
		}
	}
}

// The method `has` reports whether this gateway serves a route.
func (a *API) has(r routes.Route) bool { return !r.AtSearch || a.config.Search != nil }

// routeOf returns the steps and the handler for the requests of a route.
func (a *API) routeOf(v routes.Version, r routes.Route) route {
	of := route{version: v, class: r.Class, key: r.Key, places: a.places.assets}
	of.body = r.Class == routes.Write && r.Method != http.MethodDelete
	switch {
	case a.isMirror() && needsOrigin(r):
		return route{version: v, class: routes.Read, answer: a.toOrigin}
	case r.AtGateway:
		of.answer, of.stored, of.places = a.own(v, r), true, nil
	case r.AtSearch:
		of.answer, of.places = a.forwardTo(a.config.Search, pathIn(v)), a.places.search
	default:
		of.answer = a.forwardTo(a.config.Assets, pathIn(v))
	}
	switch r.Pattern {
	case "/assets":
		of.live = r.Class == routes.List
	case "/assets/:id":
		if r.Class == routes.Read {
			of.answer = a.recall(v, of.answer)
		}
	case routes.Segment:
		of.share = a.share(a.segments, a.nameOf, "You read %d segments of the snapshot at once; finish one first.")
		of.stored = true
	}
	if _, isExport := formOf(r.Pattern); isExport {
		of.share = a.oneExport()
	}
	return of
}

// The method `own` returns the handler of a route that the gateway answers itself.
func (a *API) own(v routes.Version, r routes.Route) handler {
	if form, ok := formOf(r.Pattern); ok {
		return a.export(form, "")
	}
	switch r.Pattern {
	case "/me":
		return a.me
	case "/spore":
		return a.spore(v)
	case "/openapi.json":
		return file(static.New("application/json", "no-cache", openapi.JSON(v.Target)))
	case "/openapi.yaml":
		return file(static.NewYAML("no-cache", openapi.JSON(v.Target)))
	case "/health":
		return a.answerHealth
	default:
		panic("gateway: no handler for " + r.Method + " " + r.Pattern)
	}
}

// file returns the handler of a route that answers with a file.
func file(f http.Handler) handler {
	return func(c *gin.Context) error {
		f.ServeHTTP(c.Writer, c.Request)
		return nil
	}
}

// routeLog adds the public log, which the asset service serves. The rate limits count a request for any part of
// the log as a read (docs/log.md, "Overview").
func (a *API) routeLog(engine *gin.Engine) {
	engine.Match(reading, "/log/*path", a.pipeline(route{
		class: routes.Read, answer: a.forwardTo(a.config.Assets, samePath), places: a.places.assets,
	}))
}

// TimeoutOf returns the longest time for a request, by its route; 0 means Config.Timeout.
func (a *API) TimeoutOf(c *gin.Context) time.Duration {
	_, isForPeople := peoplesFiles[c.Request.URL.Path]
	switch {
	case a.isTransfer(c), strings.Contains(c.FullPath(), routes.Search+"."), isForPeople:
		return httpserver.Unlimited
	case !isRead(c.Request):
		return 0
	case isList(c):
		if isOwn(c) {
			return cmp.Or(a.config.Settings.ListTimeout, a.config.Timeout)
		}
		format, wait, _ := asked(c.Request)
		if format != stream.None {
			return httpserver.Unlimited
		}
		return cmp.Or(a.config.Settings.ListTimeout, a.config.Timeout) + wait
	default:
		return a.config.Settings.ReadTimeout
	}
}

// isList reports whether the request's path leads to the feed or to the caller's own assets.
func isList(c *gin.Context) bool { return strings.HasSuffix(c.FullPath(), "/assets") }

// isOwn reports whether the request's path leads to the caller's own assets.
func isOwn(c *gin.Context) bool { return strings.HasSuffix(c.FullPath(), routes.OwnAssets) }

// isRead reports whether the request's method only reads.
func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// reading has the methods of routes that can only be read.
var reading = []string{http.MethodGet, http.MethodHead}

// welcome answers GET / with the versions, and with the addresses of the feed, the documentation page and the
// OpenAPI document. The header Link also names the last two addresses (RFC 8631).
func (a *API) welcome(c *gin.Context) error {
	var names []string
	for _, v := range routes.Versions() {
		names = append(names, v.Name)
	}
	base := a.baseURL(c.Request)
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
	if a.isMirror() {
		answer["origin"] = a.config.Origin
	}
	c.Header("Cache-Control", "no-cache")
	return httpserver.JSON(c, http.StatusOK, answer)
}

// lifecycle sets the headers Deprecation (RFC 9745) and Sunset (RFC 8594), if the version has these dates.
func (a *API) lifecycle(v routes.Version) step {
	var deprecated, sunset string
	if date, err := time.Parse(time.DateOnly, a.config.Settings.Deprecated[v.Name]); err == nil {
		deprecated = "@" + strconv.FormatInt(date.Unix(), 10)
	}
	if date, err := time.Parse(time.DateOnly, a.config.Settings.Sunset[v.Name]); err == nil {
		sunset = date.Format(http.TimeFormat)
	}
	return check(func(c *gin.Context) error {
		if deprecated != "" {
			c.Header("Deprecation", deprecated)
		}
		if sunset != "" {
			c.Header("Sunset", sunset)
		}
		return nil
	})
}

// noMethod answers a request whose path exists, but not with the request's method. If the path names an object
// that does not exist, the answer says this instead (docs/contract.md, "Order of checks"). To find out, the
// gateway reads from the asset service, so the rate limits count the request as a read.
func (a *API) noMethod() gin.HandlerFunc {
	refuse := httpserver.Handle(httpserver.NoMethod)
	look := a.pipeline(route{class: routes.Read, places: a.places.assets, answer: func(c *gin.Context) error {
		path, _ := objectPath(c)
		missing := a.config.Assets.For(a.nameOf(c)).Missing(c.Request.Context(), path)
		if fault.KindOf(missing) == fault.NotFound {
			return missing
		}
		return httpserver.NoMethod(c)
	}})
	return func(c *gin.Context) {
		if _, ok := objectPath(c); !ok || c.Request.Method == http.MethodOptions {
			refuse(c)
			return
		}
		look(c)
	}
}

// objectPath returns the path of an asset or a transfer at the asset service, if the request's path leads to
// this object or to a part of it. The result `ok` is false if the path leads to no object.
func objectPath(c *gin.Context) (path string, ok bool) {
	segments := strings.Split(c.Request.URL.Path, "/") // the elements are "", "api", version, kind, id, and so on
	if len(segments) < 5 || segments[3] != "assets" && segments[3] != "transfers" {
		return "", false
	}
	v, ok := routes.FindVersion(segments[2])
	if !ok {
		return "", false
	}
	return routes.Prefix(v.Target) + "/" + segments[3] + "/" + segments[4], true
}
