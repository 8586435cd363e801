package httpapi

import (
	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// The percentage of the places for requests that each back end has. The rest is for the gateway's own answers. So a
// back end that hangs takes only its own places (docs/contract.md, "Overload").
const (
	assetsPlaces = 50
	searchPlaces = 20
	filesPlaces  = 20
)

// places has the places for requests to each back end. They are parts of Config.Current.
type places struct{ assets, search, files *concurrency.Limiter }

func newPlaces(all *concurrency.Limiter) places {
	return places{all.Part(assetsPlaces), all.Part(searchPlaces), all.Part(filesPlaces)}
}

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
			return a.admit(c, r, next)
		}
	}
}

// admit calls the given handler (next) with the request, unless too many requests are being processed, or too many at
// the route's back end.
func (a *API) admit(c *gin.Context, r route, next handler) error {
	current, priority := r.places, concurrency.AnonymousRead
	if current == nil {
		current = a.config.Current
	}
	switch {
	case r.class == routes.Write:
		priority = concurrency.Write
	case !caller(c).IsAnonymous():
		priority = concurrency.KeyedRead
	}
	v := visitorOf(c)
	v.enter = func() (admitted bool) {
		v.leave, admitted = current.Admit(priority, a.nameOf(c), httpserver.Sending(c.Writer))
		return admitted
	}
	if !v.enter() {
		return a.crowded(c)
	}
	defer func() { v.leave() }()
	c.Request.Header.Set(httpserver.CallerHeader, a.nameOf(c)) // for the edge, which compresses the answer
	return next(c)
}

// crowded counts a request that is refused because too many requests are being processed. It returns the
// refusal.
func (a *API) crowded(c *gin.Context) error {
	a.overrun.Add(c.Request.Context(), 1)
	return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many requests now; repeat this one.")
}
