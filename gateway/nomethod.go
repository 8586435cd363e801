package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/gateway/internal/version"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// noMethod answers a request whose path exists, but not with its method. A missing
// object is reported first. The lookup counts as a reading, so limits hold for it.
func (s *Server) noMethod() []gin.HandlerFunc {
	return []gin.HandlerFunc{
		func(c *gin.Context) {
			if _, ok := object(c); !ok || c.Request.Method == http.MethodOptions {
				httpserver.Handle(httpserver.NoMethod)(c)
				c.Abort()
			}
		},
		s.identify(readKeyShare), s.limit(ratelimit.Read), s.crowd(ratelimit.Read),
		httpserver.Handle(func(c *gin.Context) error {
			path, _ := object(c)
			if missing := s.assets.Get(c.Request.Context(), path); fault.KindOf(missing) == fault.NotFound {
				return missing
			}
			return httpserver.NoMethod(c)
		}),
	}
}

// object returns the upstream's path of the asset, part or transfer that a
// request's path names, and whether it names one.
func object(c *gin.Context) (path string, ok bool) {
	steps := strings.Split(c.Request.URL.Path, "/") // "", "api", version, kind, id, ...
	if len(steps) < 5 || steps[3] != "assets" && steps[3] != "transfers" {
		return "", false
	}
	at := slices.IndexFunc(version.Table, func(v version.Version) bool { return v.Name == steps[2] })
	if at < 0 {
		return "", false
	}
	return readable(upstreamPath(c, version.Table[at])), true
}

// readable returns what can be read of a path: to hand an asset over cannot.
func readable(path string) string { return strings.TrimSuffix(path, "/"+ownership) }
