package httpapi

import (
	"math"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
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

// An answer costs one more request for each full number of bytes that it has before compression, or that were read for
// it if these are more (docs/contract.md, "Rate limits"). The number depends on the class of the request.
var bytesOf = map[routes.Class]int64{
	routes.List: 2 << 20, routes.Own: 2 << 20, routes.Read: 16 << 10, routes.Write: 256 << 10,
}

// storedBytes is this number for stored bytes, such as files.
const storedBytes = 1 << 20

// charge counts what an answer cost, once the answer has ended or broken off. Nobody knows the cost before. Streams do
// not pass this step, because a client has few places for them.
func (a *API) charge(r route) step {
	return func(next handler) handler {
		return func(c *gin.Context) error {
			defer func() {
				each := bytesOf[r.class]
				if r.stored || a.isTransfer(c) {
					each = storedBytes
				}
				work := max(httpserver.WorkOf(c.Request.Context()), int64(c.Writer.Size()))
				if times := work / each; times > 0 {
					a.config.Limits.Charge(ratelimit.Request{Class: r.class, Client: client(c)}, times)
				}
			}()
			return next(c)
		}
	}
}

// One key may use a quarter of the room for bodies, and all keys of a broker together may use half.
const (
	keyPart    = 4 // 1/4
	brokerPart = 2 // 1/2
)

// room limits the request bodies that are being received. Receiving lasts as long as the client takes to send.
// Each caller may only use a part of the memory for bodies, and of the number of requests. So the unfinished
// bodies of one caller leave room for other callers.
type room struct {
	memory *memory.Budget
	shares []share
}

// share is the part of the room that each caller of one kind may use.
type share struct {
	of       func(identity.Identity) string
	bytes    *concurrency.Shares
	requests *concurrency.Shares
}

// newRoom returns a room that takes its memory from budget. It is for bodies of up to maxBody bytes, and for
// the given number of bodies at once. A single body always fits into a share.
func newRoom(budget *memory.Budget, maxBody int64, requests int) *room {
	r := &room{memory: budget}
	for _, kind := range []struct {
		part int
		of   func(identity.Identity) string
	}{
		{keyPart, func(i identity.Identity) string { return i.KeyID }},
		{brokerPart, func(i identity.Identity) string { return i.Broker }},
	} {
		bytes := max(int(budget.Size())/kind.part, int(maxBody))
		r.shares = append(r.shares, share{
			of:       kind.of,
			bytes:    concurrency.NewShares(bytes, math.MaxInt), // all callers together are limited only by the memory
			requests: concurrency.NewShares(max(requests/kind.part, 1), requests),
		})
	}
	return r
}

// hold reserves room for a caller's body until the function `release` is called. If the caller already uses its
// part, it returns a fault of kind TooMany; if there is no room, a fault of kind Unavailable.
func (r *room) hold(of identity.Identity, bytes int64) (release func(), err error) {
	var held held
	for _, s := range r.shares {
		name := s.of(of)
		for _, part := range []struct {
			shares *concurrency.Shares
			amount int
		}{{s.requests, 1}, {s.bytes, int(bytes)}} {
			if refusal := part.shares.Take(name, part.amount); refusal != concurrency.Admitted {
				held.release()
				if refusal == concurrency.AllUsed {
					return nil, noRoom()
				}
				return nil, tooManyBodies()
			}
			held.add(func() { part.shares.Return(name, part.amount) })
		}
	}
	if !r.memory.Hold(bytes) {
		held.release()
		return nil, noRoom()
	}
	held.add(func() { r.memory.Release(bytes) })
	return held.release, nil
}

func noRoom() error {
	return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many large requests now; repeat this one.")
}

func tooManyBodies() error {
	f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
		"You send too many bodies at once; finish one first.")
	f.RetryAfter = time.Second
	return f
}
