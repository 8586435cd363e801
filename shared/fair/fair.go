// Package fair shares an amount, such as places or bytes, between the callers that compete for it. So the work of
// one caller delays the work of another caller by a bounded number of turns, however much it asks for
// (docs/contract.md, "Overload").
//
// A caller is a name that the gateway gives to a client (httpserver.CallerHeader). All requests without a name
// count as one caller.
package fair

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxWaiting = 256             // maximum number of requests that may wait
	maxShare   = maxWaiting / 4  // maximum number of requests of one caller that may wait
	maxWait    = 2 * time.Second // longest wait of a request
)

// ErrFull is returned when the amount was not free in time, or too many requests wait already.
var ErrFull = errors.New("too many requests wait for this now")

// Semaphore limits the amount that all callers together hold at the same time. Among the callers that wait, it serves
// the one that holds the least. Of those that hold the same, it serves the one that has had nothing for the longest
// time. It is safe for concurrent use.
type Semaphore struct {
	size    int64
	refused atomic.Int64

	mu      sync.Mutex
	used    int64
	waiting int
	order   int64 // number of the last event after which a caller comes last
	callers map[string]*caller
}

// caller is a caller that holds or waits for an amount.
type caller struct {
	held    int64
	last    int64 // order of the event after which the caller comes behind the others
	waiting []*waiter
}

// waiter is a request that waits for an amount.
type waiter struct {
	amount int64
	done   chan error // gets nil when the request has its amount, or ErrFull
}

// New returns a semaphore of the given size.
func New(size int64) *Semaphore { return &Semaphore{size: size, callers: map[string]*caller{}} }

// NewPlaces returns a semaphore with a place for half of the processors, rounded up. Services of one process share
// it, so that a request that costs little always finds a processor.
func NewPlaces() *Semaphore { return New(int64(runtime.GOMAXPROCS(0)+1) / 2) }

// Acquire waits up to 2 s until the caller by has an amount of n. It returns a function that gives the amount back;
// that function may be called more than once. If n is more than Size, it acquires Size. It returns ErrFull or the
// context's error.
//
// A request must not acquire twice from one semaphore: two requests could wait for each other.
func (s *Semaphore) Acquire(ctx context.Context, by string, n int64) (release func(), err error) {
	n = max(1, min(n, s.size))
	if err := s.wait(ctx, by, s.enter(by, n)); err != nil {
		s.refused.Add(1)
		return nil, err
	}
	return sync.OnceFunc(func() { s.leave(by, n) }), nil
}

// enter puts a request behind the other requests of its caller, and serves whom it can. If too many requests wait, it
// refuses the newest request of the caller with the most of them.
func (s *Semaphore) enter(by string, n int64) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{n, make(chan error, 1)}
	c := s.callers[by]
	if c == nil {
		s.order++
		c = &caller{last: s.order}
		s.callers[by] = c
	}
	c.waiting = append(c.waiting, w)
	s.waiting++
	s.serve()
	switch {
	case len(c.waiting) > maxShare:
		s.refuse(by)
	case s.waiting > maxWaiting:
		s.refuse(s.most())
	}
	return w
}

// most returns the caller with the most waiting requests. Of those with the same number, it returns the one that comes
// last.
func (s *Semaphore) most() (name string) {
	var found *caller
	for by, c := range s.callers {
		if found == nil || len(c.waiting) > len(found.waiting) ||
			len(c.waiting) == len(found.waiting) && c.last > found.last {
			name, found = by, c
		}
	}
	return name
}

// refuse refuses the newest request of a caller.
func (s *Semaphore) refuse(by string) {
	c := s.callers[by]
	newest := len(c.waiting) - 1
	c.waiting[newest].done <- ErrFull
	s.remove(by, c, newest)
	s.serve() // the request behind it may need less
}

// remove takes a request out of the queue of its caller, and forgets a caller that has nothing more.
func (s *Semaphore) remove(by string, c *caller, at int) {
	c.waiting = append(c.waiting[:at], c.waiting[at+1:]...)
	s.waiting--
	if c.held == 0 && len(c.waiting) == 0 {
		delete(s.callers, by)
	}
}

// serve gives amounts to requests, as long as the next request gets all of its amount.
func (s *Semaphore) serve() {
	for s.waiting > 0 {
		var name string
		var next *caller
		for by, c := range s.callers {
			if len(c.waiting) > 0 && (next == nil || c.held < next.held || c.held == next.held && c.last < next.last) {
				name, next = by, c
			}
		}
		w := next.waiting[0]
		if s.used+w.amount > s.size {
			return
		}
		s.used += w.amount
		next.held += w.amount
		w.done <- nil
		s.remove(name, next, 0)
	}
}

// wait waits until a request has its amount.
func (s *Semaphore) wait(ctx context.Context, by string, w *waiter) error {
	select {
	case err := <-w.done: // so that a request that need not wait makes no timer
		return err
	default:
	}
	short, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case err := <-w.done:
		return err
	case <-short.Done():
	}
	if !s.withdraw(by, w) { // the request was served or refused meanwhile
		return <-w.done
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrFull
}

// withdraw takes a request out of its queue. It returns false if the request no longer waits.
func (s *Semaphore) withdraw(by string, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.callers[by]; c != nil {
		for i, other := range c.waiting {
			if other == w {
				s.remove(by, c, i)
				s.serve() // the request behind it may need less
				return true
			}
		}
	}
	return false
}

// leave takes an amount back from a caller. The caller then comes behind all others.
func (s *Semaphore) leave(by string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callers[by]
	s.used -= n
	c.held -= n
	s.order++
	c.last = s.order
	if c.held == 0 && len(c.waiting) == 0 {
		delete(s.callers, by)
	}
	s.serve()
}

// Used returns the amount that all callers hold.
func (s *Semaphore) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// Size returns the amount that all callers together may hold.
func (s *Semaphore) Size() int64 { return s.size }

// Refused returns how often Acquire failed.
func (s *Semaphore) Refused() int64 { return s.refused.Load() }
