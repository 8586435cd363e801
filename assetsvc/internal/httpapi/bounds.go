package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
)

// Memory is what the requests of a process may hold at once.
type Memory struct {
	Answers *memory.Answers   // being sent
	Work    *memory.Semaphore // assets that are not small, being worked on
}

// NewMemory returns a quarter of limit, in bytes, for answers, and another one
// for work; enough for one of the largest assets in any case.
func NewMemory(limit int64) Memory {
	quarter := max(limit/4, 2*registry.MaxAsset)
	return Memory{Answers: memory.NewAnswers(quarter), Work: memory.NewSemaphore(quarter)}
}

// sizes are the steps by which a request gets room to work in. It is tried with
// a small asset first, which needs none; the store tells when it is larger.
var sizes = []int{memory.Small, 512 << 10, registry.AnySize}

// How many bytes a request works with for each byte of an asset or body.
const (
	copies = 3  // as the store has read it, as it is decoded, and the answer
	trees  = 20 // parsed, changed, printed and compared
)

// bounded returns a handler that runs h with as much room as its asset and body
// need: factor bytes for each of theirs. h may run again with more room, so it
// must return registry.ErrLarge before it has changed anything.
func (a *API) bounded(factor int, h func(a *API, c *gin.Context) error) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		factor := factor
		if strings.Contains(c.Request.URL.RawQuery, "opt_") { // indented, or wrapped
			factor = trees
		}
		for _, most := range sizes {
			if int64(most) < c.Request.ContentLength {
				continue
			}
			body := c.Request.Body
			err := a.within(c, most, factor, h)
			if !errors.Is(err, registry.ErrLarge) {
				return err
			}
			if again, ok := c.Request.Body.(io.Seeker); ok && c.Request.Body != body {
				if _, err := again.Seek(0, io.SeekStart); err != nil {
					return fmt.Errorf("read body again: %w", err)
				}
			}
		}
		return fmt.Errorf("bound %s: %w", c.FullPath(), registry.ErrLarge) // nothing is larger than any size
	})
}

// within runs h for assets of at most most bytes.
func (a *API) within(c *gin.Context, most, factor int, h func(a *API, c *gin.Context) error) error {
	if most == memory.Small {
		return h(a.upto(most), c)
	}
	bytes := int64(min(most, registry.MaxAsset))
	larger, leave, err := a.enter(c.Request.Context(), bytes*int64(factor))
	if err != nil {
		return err
	}
	defer leave()
	larger = larger.upto(most)
	if isReading(c) {
		return h(larger, c)
	}
	// The answer to a write must not be refused once the write is done.
	if !a.memory.Answers.Hold(bytes) {
		return noMemory()
	}
	defer a.memory.Answers.Release(bytes)
	larger.reserved = true
	return h(larger, c)
}

func (a *API) upto(most int) *API {
	bounded := *a
	bounded.registry = a.registry.Upto(most)
	return &bounded
}

// enter takes room for a request that does not fit the usual, and returns the
// API that leaves it before it sends the answer.
func (a *API) enter(ctx context.Context, bytes int64) (inside *API, leave func(), err error) {
	leave, err = a.memory.Work.Acquire(ctx, bytes)
	if errors.Is(err, memory.ErrFull) {
		return nil, nil, noMemory()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("wait for memory: %w", err)
	}
	entered := *a
	entered.leave = leave
	return &entered, leave, nil
}

func noMemory() error {
	return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many large requests now; repeat this one.")
}

func isReading(c *gin.Context) bool {
	return c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
}

// send sends a JSON answer. The memory that it holds is bounded, and so is the
// time that the client takes.
func (a *API) send(c *gin.Context, status int, body []byte) error {
	kept, release := body, func() {}
	if isReading(c) && !a.reserved {
		var ok bool
		if kept, release, ok = a.memory.Answers.Keep(body); !ok {
			c.Writer.Header().Del("ETag")
			return noMemory()
		}
	}
	defer release()
	a.leave()
	c.Status(status)
	var err error
	if len(kept) <= memory.Small {
		_, err = c.Writer.Write(kept)
	} else {
		err = httpserver.NewSender(c.Writer, a.pace).SendAll(c.Request.Context(), kept, a.memory.Answers.IsCrowded)
	}
	if err != nil {
		_ = c.Error(fmt.Errorf("send answer: %w", err)) // for the log only
		panic(http.ErrAbortHandler)                     // a compressed answer must not look whole
	}
	return nil
}

// repeatable is a body that was read and can be read again.
type repeatable struct{ *bytes.Reader }

func (repeatable) Close() error { return nil }
