package httpapi

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
)

// needsOrigin reports whether a mirror refuses the requests of a route. A mirror refuses writes, and requests that
// need a key.
func needsOrigin(r routes.Route) bool { return r.Class == routes.Write || r.Key }

// toOrigin refuses a request that only the origin of the mirror can answer.
func (a *API) toOrigin(c *gin.Context) error {
	c.Writer.Header().Add("Link", fmt.Sprintf(`<%s>; rel="original"`, a.config.Origin))
	return fault.New(fault.Misdirected, fault.URL, "mirror",
		"This is a mirror, which takes no changes and no keys, and keeps no whole copies: send this request to %s.",
		a.config.Origin)
}
