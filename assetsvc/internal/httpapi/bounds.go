package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
)

// Memory limits the bytes and the places that all requests of a process hold together (docs/contract.md,
// "Overload").
type Memory struct {
	Answers *memory.InFlight // bytes of answers that are being sent
	Work    *fair.Semaphore  // bytes that requests use for assets larger than memory.Small
	Places  *fair.Semaphore  // places of readings that use Work, and of parts of the public log
}

// NewMemory returns a Memory that uses a quarter of the argument `limit`, in bytes, for answers and another quarter
// for work. If a quarter is not enough for one asset of the largest size, NewMemory raises it.
func NewMemory(limit int64) Memory {
	quarter := max(limit/4, 2*registry.MaxAsset)
	return Memory{Answers: memory.NewInFlight(quarter), Work: fair.New(quarter), Places: fair.NewPlaces()}
}

// sizes lists limits, in bytes, for the size of the asset that a request reads. A request runs with one limit at
// a time. With the first limit it needs no reserved memory. If the store reports that the asset is larger, the
// request runs again with the next limit.
var sizes = []int{memory.Small, medium, registry.AnySize}

// medium is the limit, in bytes, for assets of medium size. A request for them reserves little memory.
const medium = 512 << 10

// The constants say how many bytes of memory a request needs for each byte of an asset or body.
const (
	copies = 3  // the stored body, the decoded body, and the answer
	trees  = 20 // the asset is parsed, changed, printed and compared
)

// bounded returns a gin handler that reserves memory for the handler h. The argument `factor` is the number of
// bytes to reserve for each byte of the asset and the body. The handler h gets the version v with the
// view of the caller. If h returns registry.ErrLarge, h runs again with more memory, so h must return that error before
// it changes anything.
func (a *API) bounded(v version, factor int, h handler) gin.HandlerFunc {
	return a.boundedFrom(sizes, v, factor, h)
}

// dear is bounded for a handler that reads the history of an asset. It always reserves memory and a place, because
// the history may be large although the asset is small now.
func (a *API) dear(v version, h handler) gin.HandlerFunc {
	return a.boundedFrom(sizes[1:], v, trees, h)
}

func (a *API) boundedFrom(sizes []int, v version, factor int, h handler) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		factor, v := factor, v.seenBy(c)
		if strings.Contains(c.Request.URL.RawQuery, "opt_") { // the answer is indented or wrapped
			factor = trees
		}
		for _, size := range sizes {
			if int64(size) < c.Request.ContentLength {
				continue
			}
			if err := a.within(c, v, size, factor, h); !errors.Is(err, registry.ErrLarge) {
				return err
			}
		}
		// Only a bug leads here: no asset is larger than the last limit in the list `sizes`.
		return fmt.Errorf("bound %s: %w", c.FullPath(), registry.ErrLarge)
	})
}

// inTurn returns a handler that reads an asset larger than memory.Small only while it has a place. The place is given
// back before the answer is sent, and while the handler asks another server (fair.Rest).
func inTurn(h handler) handler {
	return func(a *API, c *gin.Context, v version) error {
		if a.size <= memory.Small {
			return h(a, c, v)
		}
		inside, end, err := a.turn(c)
		if err != nil {
			return err
		}
		defer end()
		read := memory.Small // the asset has more bytes than this
		if a.size > medium {
			read = medium
		}
		httpserver.CountWork(c.Request.Context(), int64(read))
		return h(inside, c, v)
	}
}

// turn waits for a place, which callers share fairly. It returns an API that gives the place back before it sends the
// answer. The caller must call the function `end` in any case.
func (a *API) turn(c *gin.Context) (inside *API, end func(), err error) {
	ctx, end, err := a.memory.Places.Take(c.Request.Context(), c.GetHeader(httpserver.CallerHeader), 1)
	if err != nil {
		return nil, nil, unshared(err)
	}
	c.Request = c.Request.WithContext(ctx)
	taken, leave := *a, a.leave
	taken.leave = func() {
		end()
		leave()
	}
	return &taken, end, nil
}

// The method `within` runs the handler h for assets of at most the given size, in bytes.
func (a *API) within(c *gin.Context, v version, size, factor int, h handler) error {
	if size == memory.Small {
		return h(a.upto(size), c, v)
	}
	bytes := int64(min(size, registry.MaxAsset))
	larger, leave, err := a.enter(c, bytes*int64(factor))
	if err != nil {
		return err
	}
	defer leave()
	larger = larger.upto(size)
	if isReading(c) {
		return h(larger, c, v)
	}
	// Reserve memory for the answer to a write now: once the write is done, its answer must not be refused.
	if !a.memory.Answers.Hold(bytes) {
		return overloaded()
	}
	defer a.memory.Answers.Release(bytes)
	return h(larger, c, v)
}

// The method `upto` returns an API that refuses, with registry.ErrLarge, to read an asset of more bytes than the given
// size.
func (a *API) upto(size int) *API {
	bounded := *a
	bounded.size, bounded.registry = size, a.registry.Upto(size)
	return &bounded
}

// enter reserves memory for a request. It returns an API that frees the memory before it sends the answer. The caller
// must call the function `leave` in any case. A second call of leave does nothing.
func (a *API) enter(c *gin.Context, bytes int64) (inside *API, leave func(), err error) {
	if leave, err = share(c, a.memory.Work, bytes); err != nil {
		return nil, nil, err
	}
	entered := *a
	entered.leave = leave
	return &entered, leave, nil
}

// share waits until the caller of a request has its part of something.
func share(c *gin.Context, of *fair.Semaphore, n int64) (leave func(), err error) {
	leave, err = of.Acquire(c.Request.Context(), c.GetHeader(httpserver.CallerHeader), n)
	return leave, unshared(err)
}

// unshared returns the error of a request that got no part of something.
func unshared(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fair.ErrFull) {
		return overloaded()
	}
	return fmt.Errorf("wait for others: %w", err)
}

func overloaded() error {
	const says = "There are too many large requests now; repeat this one."
	return fault.New(fault.Unavailable, fault.URL, "registry", says)
}

func isReading(c *gin.Context) bool {
	return c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
}

// send sends a body. It limits the memory that answers use, and the time that the client takes to read.
func (a *API) send(c *gin.Context, status int, body []byte) error {
	kept, release, sender := body, func() {}, httpserver.NewSender(c.Writer, a.pace)
	if isReading(c) {
		var ok bool
		if kept, release, ok = a.memory.Answers.Keep(c.GetHeader(httpserver.CallerHeader), sender, body); !ok {
			c.Writer.Header().Del("ETag")
			return overloaded()
		}
	}
	defer release()
	a.leave()
	c.Status(status)
	var err error
	if len(kept) <= memory.Small {
		_, err = sender.WriteNow(kept)
	} else {
		err = sender.SendAll(c.Request.Context(), kept, a.memory.Answers.IsCrowded)
	}
	if err != nil {
		_ = c.Error(fmt.Errorf("send answer: %w", err)) // for the log: the client does not get this error
		panic(http.ErrAbortHandler)                     // end the connection, or the answer could look complete
	}
	return nil
}
