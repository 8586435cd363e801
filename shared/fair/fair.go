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
	maxDebt    = time.Second     // time by which a caller that has used much comes later than others, at most
)

// ErrFull is returned when the amount was not free in time, or too many requests wait already.
var ErrFull = errors.New("too many requests wait for this now")

// Semaphore limits the amount that all callers together hold at the same time. Among the callers that wait, it serves
// the one that holds the least, and of those that hold the same the one whose time has come first. The time of a caller
// is when it came, or later if it has used more than its share. So long turns of one caller do not cost another caller
// a turn for each of its short ones. It is safe for concurrent use.
type Semaphore struct {
	size    int64
	refused atomic.Int64

	mu      sync.Mutex
	used    int64
	waiting int
	callers map[string]*caller
}

// caller is a caller that holds or waits for an amount, or has lately held one.
type caller struct {
	held    int64
	next    time.Time // callers with an earlier time are served first
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
	begun := time.Now()
	return sync.OnceFunc(func() { s.leave(by, n, time.Since(begun)) }), nil
}

// enter puts a request behind the other requests of its caller, and serves whom it can. If too many requests wait, it
// refuses the newest request of the caller with the most of them.
func (s *Semaphore) enter(by string, n int64) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, now := &waiter{n, make(chan error, 1)}, time.Now()
	c := s.callers[by]
	if c == nil {
		s.forget(now)
		c = &caller{}
		s.callers[by] = c
	}
	if len(c.waiting) == 0 && c.next.Before(now) {
		c.next = now
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
			len(c.waiting) == len(found.waiting) && c.next.After(found.next) {
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
	s.remove(c, newest)
	s.serve() // the request behind it may need less
}

// remove takes a request out of the queue of its caller.
func (s *Semaphore) remove(c *caller, at int) {
	c.waiting = append(c.waiting[:at], c.waiting[at+1:]...)
	s.waiting--
}

// forget removes the callers that have nothing and whose time has passed, once there are many.
func (s *Semaphore) forget(now time.Time) {
	if len(s.callers) < 2*maxWaiting {
		return
	}
	for by, c := range s.callers {
		if c.held == 0 && len(c.waiting) == 0 && c.next.Before(now) {
			delete(s.callers, by)
		}
	}
}

// serve gives amounts to requests, as long as the next request gets all of its amount.
func (s *Semaphore) serve() {
	for s.waiting > 0 {
		var next *caller
		for _, c := range s.callers {
			if len(c.waiting) > 0 &&
				(next == nil || c.held < next.held || c.held == next.held && c.next.Before(next.next)) {
				next = c
			}
		}
		w := next.waiting[0]
		if s.used+w.amount > s.size {
			return
		}
		s.used += w.amount
		next.held += w.amount
		w.done <- nil
		s.remove(next, 0)
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
				s.remove(c, i)
				s.serve() // the request behind it may need less
				return true
			}
		}
	}
	return false
}

// leave takes back an amount that a caller has used for a time. The caller then comes later by the time that the other
// callers need to get the same.
func (s *Semaphore) leave(by string, n int64, used time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, now, active := s.callers[by], time.Now(), 0
	for _, other := range s.callers {
		if other.held > 0 || len(other.waiting) > 0 {
			active++
		}
	}
	s.used -= n
	c.held -= n
	share := time.Duration(float64(used) * float64(n) / float64(s.size) * float64(active))
	if c.next.Before(now) {
		c.next = now
	}
	if c.next = c.next.Add(share); c.next.After(now.Add(maxDebt)) {
		c.next = now.Add(maxDebt)
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

// Answer is an answer that is being sent.
type Answer interface {
	// Waits returns the time for which the client has not taken what was written last; 0: it has taken everything.
	Waits() time.Duration
	// Cut ends the answer. It does not wait.
	Cut()
}

// patience is the time that a client has to take what was written, however many others need what its answer holds.
const patience = time.Second

// Held knows what answers hold until they are sent, such as places or bytes. If others need it, answers end whose
// clients take nothing. The zero value is ready. It is safe for concurrent use.
type Held struct {
	mu      sync.Mutex
	all     map[*holder]struct{}
	callers map[string]int // number of answers of each caller
}

type holder struct {
	by     string
	answer Answer
	give   func()
}

// Add notes that the answer to a caller holds something. The function `give` gives it back. The caller of Add must call
// the function `end` before the answer's handler returns.
func (h *Held) Add(by string, answer Answer, give func()) (end func()) {
	one := &holder{by, answer, give}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all, h.callers = map[*holder]struct{}{}, map[string]int{}
	}
	h.all[one] = struct{}{}
	h.callers[by]++
	return func() { h.end(one) }
}

// end gives back what an answer holds, unless Take has done so.
func (h *Held) end(one *holder) {
	h.mu.Lock()
	_, holds := h.all[one]
	h.forget(one)
	h.mu.Unlock()
	if holds {
		one.give()
	}
}

func (h *Held) forget(one *holder) {
	if _, known := h.all[one]; !known {
		return
	}
	delete(h.all, one)
	if h.callers[one.by]--; h.callers[one.by] == 0 {
		delete(h.callers, one.by)
	}
}

// Take cuts an answer whose client has taken nothing for a second, and gives back what the answer held. It chooses the
// caller with the most answers, and the answer of this caller that has waited longest. It returns false if there is
// none.
func (h *Held) Take() bool {
	h.mu.Lock()
	var worst *holder
	var longest time.Duration
	for one := range h.all {
		waits := one.answer.Waits()
		more := worst == nil || h.callers[one.by] > h.callers[worst.by]
		if waits >= patience && (more || h.callers[one.by] == h.callers[worst.by] && waits > longest) {
			worst, longest = one, waits
		}
	}
	if worst != nil {
		h.forget(worst)
		worst.answer.Cut() // its handler cannot have returned, because `end` waits for h.mu
	}
	h.mu.Unlock()
	if worst != nil {
		worst.give()
	}
	return worst != nil
}

type turnKey struct{}

// turn is an amount that a request holds. The request gives it back while it waits for another server.
type turn struct {
	from *Semaphore
	by   string
	n    int64

	mu      sync.Mutex
	release func() // nil while the request rests, and after its end
	ended   bool
}

// Take is Acquire for work that may wait for other servers. Rest gives the amount back while work with the returned
// context waits.
func (s *Semaphore) Take(ctx context.Context, by string, n int64) (inside context.Context, end func(), err error) {
	release, err := s.Acquire(ctx, by, n)
	if err != nil {
		return ctx, nil, err
	}
	t := &turn{from: s, by: by, n: n, release: release}
	return context.WithValue(ctx, turnKey{}, t), t.end, nil
}

// Rest calls the function `wait`, which asks another server. Meanwhile the amount that ctx has from Take is free for
// others. Rest returns the error of `wait`, or ErrFull or the context's error if it cannot get the amount again.
func Rest(ctx context.Context, wait func() error) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil || !t.pause() {
		return wait()
	}
	if err := wait(); err != nil {
		return err // the work ends
	}
	release, err := t.from.Acquire(ctx, t.by, t.n)
	if err != nil {
		return err
	}
	t.resume(release)
	return nil
}

// pause gives the amount back. It returns false if the request does not hold it now.
func (t *turn) pause() bool {
	release := t.take()
	if release == nil {
		return false
	}
	release()
	return true
}

func (t *turn) take() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	release, t.release = t.release, nil
	return release
}

func (t *turn) resume(release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		release()
		return
	}
	t.release = release
}

func (t *turn) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.pause()
}
