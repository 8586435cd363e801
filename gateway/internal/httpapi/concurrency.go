package httpapi

import (
	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
)

// bound refuses a request if too many requests are being processed. The limit depends on the request's class and on
// whether it has a valid key, so the request must have passed identify. While a request waits in identify for its
// key, it is not counted; this wait has a separate time limit. Streams and long polls have a separate bound, in the
// method `follow`.
func (a *API) bound(r route) step {
	return func(next handler) handler {
		return func(c *gin.Context) error {
			if r.live && isLive(c.Request) {
				return next(c)
			}
			return a.admit(c, r.class, next)
		}
	}
}

// admit calls the given handler (next) with the request, unless too many requests are being processed.
func (a *API) admit(c *gin.Context, class routes.Class, next handler) error {
	priority := concurrency.AnonymousRead
	switch {
	case class == routes.Write:
		priority = concurrency.Write
	case !caller(c).IsAnonymous():
		priority = concurrency.KeyedRead
	}
	if !a.config.Current.Enter(priority) {
		return a.crowded(c)
	}
	defer a.config.Current.Leave()
	return next(c)
}

// crowded counts a request that is refused because too many requests are being processed. It returns the
// refusal.
func (a *API) crowded(c *gin.Context) error {
	a.overrun.Add(c.Request.Context(), 1)
	return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many requests now; repeat this one.")
}
