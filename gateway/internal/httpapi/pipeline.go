package httpapi

import (
	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// handler answers a request, or returns an error that says why it does not.
type handler func(*gin.Context) error

// step returns a handler that checks or prepares a request. This handler then refuses the request, or passes it on to
// the argument `next`.
type step func(next handler) handler

// route says which steps the requests of a route pass. A field that is zero adds no step.
type route struct {
	version routes.Version // the version in the path of the route
	class   routes.Class   // cost and importance of a request; "": the route's handler has its own limits
	key     bool           // a request needs an API key
	body    bool           // requests have a body
	live    bool           // a request may ask for a stream, or wait for a change
	stored  bool           // answers are stored bytes, which take little work to send
	form    bool           // a request may be a form, which pages of other origins can send
	share   step           // limits the long-lasting work that one client may have at the same time
	answer  handler

	places *concurrency.Limiter // the places of the back end that answers; nil: the gateway answers by itself
}

// pipeline returns the handler of a route. A request passes the steps from first to last. If several steps
// would refuse a request, the first one decides (docs/contract.md, "Order of checks"). Overload comes before
// the limits, so a request that is refused for overload costs its client nothing.
func (a *API) pipeline(r route) gin.HandlerFunc {
	versioned, counted := r.version.Name != "", r.class != ""
	steps := []struct {
		passed bool
		step   step
	}{
		{versioned, a.lifecycle(r.version)},
		{versioned, check(a.checkCookie)},
		{r.form, check(a.refuseForeign)},
		{counted, a.identify(r.key)},
		{counted, a.bound(r)},
		{counted && r.key, a.lockout(r.class)},
		{r.body, a.reserveBody},
		{counted, a.limit(r.class)},
		{r.live, a.follow(r)},
		{counted, a.charge(r)},
		{r.share != nil, r.share},
		{r.body, a.require(needJSON)},
		{r.key, a.require(needKey)},
		{r.body, check(a.readBody)},
	}
	answer := r.answer
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].passed {
			answer = steps[i].step(answer)
		}
	}
	return httpserver.Handle(answer)
}

// check makes a step from a function that returns a refusal, or nil to let the request pass.
func check(refusal func(*gin.Context) error) step {
	return func(next handler) handler {
		return func(c *gin.Context) error {
			if err := refusal(c); err != nil {
				return err
			}
			return next(c)
		}
	}
}
