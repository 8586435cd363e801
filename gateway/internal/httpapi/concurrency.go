package httpapi

import (
	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
)

// bound refuses a request if too many are under way; the limit depends on its
// class and on whether it has a valid key. The request must have passed
// identify. It is not counted while it waits there for its key, and that wait
// has a time limit. A stream or a long poll has the bound of follow instead.
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

// admit calls next, if not too many requests are under way.
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

// crowded counts a request that is refused because too many are under way, and returns why.
func (a *API) crowded(c *gin.Context) error {
	a.overrun.Add(c.Request.Context(), 1)
	return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many requests now; repeat this one.")
}
