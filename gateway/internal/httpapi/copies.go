package httpapi

import (
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
)

// clientCopies is how many whole copies a client may read at the same time.
const clientCopies = 4

// routeCopies adds the routes of whole copies, which the asset service answers. A mirror has none.
func (a *API) routeCopies(engine *gin.Engine) {
	of := route{
		class: routes.Read, answer: a.forwardTo(a.config.Assets.Patient(), samePath), share: a.shareCopies, stored: true,
		places: a.places.assets,
	}
	if a.isMirror() {
		of = route{class: routes.Read, answer: a.toOrigin}
	}
	for _, path := range []string{routes.Copy, routes.CopyByHash} {
		engine.Match(reading, path, a.pipeline(of))
	}
}

// shareCopies refuses a request for a whole copy if its client reads too many at the same time. The request must
// have passed identify.
func (a *API) shareCopies(next handler) handler {
	return func(c *gin.Context) error {
		client := a.nameOf(c)
		switch a.copies.Enter(client) {
		case concurrency.ShareUsed:
			f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
				"You read %d whole copies at once; finish one first.", clientCopies)
			f.RetryAfter = time.Second
			return f
		case concurrency.AllUsed:
			return a.crowded(c)
		}
		defer a.copies.Leave(client)
		return next(c)
	}
}
