package httpapi

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

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
