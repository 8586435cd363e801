package httpapi

import (
	"github.com/gin-gonic/gin"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// handler answers a request, or returns why it does not.
type handler func(*gin.Context) error

// step does its part for a request and calls next, or refuses the request.
type step func(next handler) handler

// route says which steps the requests of a route pass. The zero value of a field leaves its
// steps out.
type route struct {
	version routes.Version // whose path the route has
	class   routes.Class   // what a request costs, and how important it is; empty: answer bounds itself
	key     bool           // a request needs an API key
	body    bool           // a request has a body
	live    bool           // a request may ask for a stream, or for a change to come
	form    bool           // a request may be a form, which a page of another origin can send
	share   step           // bounds what one client does for long at once
	answer  handler
}

// pipeline returns the handler of a route. A request passes the steps from first to last,
// which decides which refusal wins (docs/contract.md, "Order of checks"). Overload comes
// before the limits, because a request that finds no room costs its client nothing.
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

// check makes a step of a function that refuses a request or lets it pass.
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
