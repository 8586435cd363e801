// Package concurrency limits how many requests are processed at the same time. As the number grows, it refuses
// the least important requests first (docs/contract.md, "Overload").
package concurrency

import (
	"sync"
	"sync/atomic"

	"asset-registry/shared/fair"
)

// Priority is the percentage of the limit up to which requests of one kind are admitted.
type Priority int64

// The priorities of requests, the least important first.
const (
	AnonymousRead Priority = 70
	KeyedRead     Priority = 85
	Write         Priority = 100
)

// Limiter counts the requests that are being processed. It is safe for concurrent use.
type Limiter struct {
	limit   int64
	current atomic.Int64
	whole   *Limiter // counts each request of this part, too; nil: this is no part
	parts   []*Limiter
	held    fair.Held // the admitted requests, without those of the parts
}

// New returns a limiter that admits up to `limit` requests at the same time.
func New(limit int) *Limiter { return &Limiter{limit: int64(limit)} }

// Part returns a limiter for the requests to one back end. These requests also count in l, and take at most the given
// percentage of it. So a back end that hangs leaves the rest to the others. Make all parts before the first request.
func (l *Limiter) Part(percent int64) *Limiter {
	part := &Limiter{limit: l.limit * percent / 100, whole: l}
	l.parts = append(l.parts, part)
	return part
}

// Enter reports whether a request is admitted. An admitted request must call Leave when it ends. If no other
// request is being processed, one request of any priority is admitted.
func (l *Limiter) Enter(p Priority) bool {
	if l.current.Add(1) > l.most(p) || l.whole != nil && !l.whole.Enter(p) {
		l.current.Add(-1)
		return false
	}
	return true
}

// Admit gives a place to the request of a caller, as Enter does. If there is none, it takes the place of an answer
// whose client takes nothing. An admitted request must call the function `leave` before its handler returns. Another
// call of it does nothing.
func (l *Limiter) Admit(p Priority, by string, answer fair.Answer) (leave func(), admitted bool) {
	for !l.Enter(p) {
		if !l.makeRoom(p) {
			return func() {}, false
		}
	}
	return l.held.Add(by, answer, l.Leave), true
}

// makeRoom ends a waiting answer in this part. If the whole is full, and not this part, it ends any waiting answer.
func (l *Limiter) makeRoom(p Priority) bool {
	if l.held.Take() {
		return true
	}
	if l.whole != nil {
		return l.current.Load() < l.most(p) && l.whole.makeRoom(p)
	}
	for _, part := range l.parts {
		if part.held.Take() {
			return true
		}
	}
	return false
}

// most returns how many requests there may be when one of this priority is admitted.
func (l *Limiter) most(p Priority) int64 { return max(1, l.limit*int64(p)/100) }

// Leave ends an admitted request.
func (l *Limiter) Leave() {
	l.current.Add(-1)
	if l.whole != nil {
		l.whole.Leave()
	}
}

// Limit returns how many requests of the highest priority are admitted at the same time.
func (l *Limiter) Limit() int { return int(max(1, l.limit)) }

// Current returns how many requests are being processed.
func (l *Limiter) Current() int64 { return l.current.Load() }

// Shares counts what each client holds for long, such as open streams, or bytes of request bodies. It is safe
// for concurrent use.
type Shares struct {
	each int // maximum that one client may hold
	all  int // maximum that all clients together may hold

	mu   sync.Mutex
	held map[string]int
	sum  int
}

// NewShares returns Shares with limits: the argument "each" for one client, and the argument "all" for all clients
// together.
func NewShares(each, all int) *Shares {
	return &Shares{each: each, all: all, held: map[string]int{}}
}

// Each returns how much one client may hold.
func (s *Shares) Each() int { return s.each }

// Refusal is the reason why Enter or Take refuses a client.
type Refusal int

// The results of Enter and Take.
const (
	Admitted Refusal = iota
	ShareUsed
	AllUsed
)

// Enter gives a client one more place, or returns why the client is not allowed to have it. An admitted client must
// call Leave once.
func (s *Shares) Enter(client string) Refusal { return s.Take(client, 1) }

// Take gives a client n more places, or returns why the client is not allowed to have them. An admitted client must
// call Return once, with the same n.
func (s *Shares) Take(client string, n int) Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held[client]+n > s.each:
		return ShareUsed
	case s.sum+n > s.all:
		return AllUsed
	}
	s.held[client] += n
	s.sum += n
	return Admitted
}

// Leave undoes a call of Enter.
func (s *Shares) Leave(client string) { s.Return(client, 1) }

// Return undoes a call of Take.
func (s *Shares) Return(client string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum -= n
	if s.held[client] -= n; s.held[client] == 0 {
		delete(s.held, client)
	}
}

// Held returns how much all clients hold together.
func (s *Shares) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}
