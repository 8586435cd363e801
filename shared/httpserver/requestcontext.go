package httpserver

import (
	"context"
	"sync"
	"time"
)

// requestContext is the context of a request. It has the request's id, and ends at a deadline if the request has a
// deadline. It makes its timer only when other code waits for its end or derives a context from it. A request that is
// answered immediately needs no timer.
type requestContext struct {
	context.Context // the context of the connection
	id              string
	end             time.Time // zero: there is no deadline
	work            *work     // of the outermost request in this process
	ownWork         work

	mu     sync.Mutex
	over   bool            // the request has been answered
	timed  context.Context // the context with the timer; nil: not needed so far
	cancel context.CancelFunc
}

// Deadline implements context.Context.
func (c *requestContext) Deadline() (time.Time, bool) {
	if end, within := c.Context.Deadline(); within && (c.end.IsZero() || end.Before(c.end)) {
		return end, true
	}
	return c.end, !c.end.IsZero()
}

// Done implements context.Context.
func (c *requestContext) Done() <-chan struct{} { return c.withTimer().Done() }

// Err implements context.Context.
func (c *requestContext) Err() error {
	c.mu.Lock()
	isEarly := c.timed == nil && !c.over && (c.end.IsZero() || time.Now().Before(c.end))
	c.mu.Unlock()
	if isEarly {
		return c.Context.Err()
	}
	return c.withTimer().Err()
}

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return c.id
	}
	if key == (workKey{}) {
		return c.work
	}
	c.mu.Lock()
	below := c.timed
	c.mu.Unlock()
	if below == nil {
		below = c.Context
	}
	// Package context asks the parent of a derived context for Done, and then for a value with a private key. Both must
	// come from the context in the field `timed`. Otherwise package context starts a goroutine for the derived context.
	return below.Value(key)
}

// withTimer returns a context that ends when the request does.
func (c *requestContext) withTimer() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed != nil {
		return c.timed
	}
	if c.end.IsZero() {
		c.timed, c.cancel = context.WithCancel(c.Context)
	} else {
		c.timed, c.cancel = context.WithDeadline(c.Context, c.end)
	}
	if c.over {
		c.cancel()
	}
	return c.timed
}

// finish ends the context: the request has been answered.
func (c *requestContext) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.cancel != nil {
		c.cancel()
	}
}
