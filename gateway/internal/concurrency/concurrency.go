// Package concurrency bounds how many requests are under way at once. As the
// number grows, it refuses the least important requests first
// (docs/contract.md, "Overload").
package concurrency

import "sync/atomic"

// Priority is the share of the limit, in percent, up to which requests of one
// kind are admitted.
type Priority int64

// The priorities of requests, the least important first.
const (
	AnonymousRead Priority = 70
	KeyedRead     Priority = 85
	Write         Priority = 100
)

// Limiter counts the requests under way. It is safe for concurrent use.
type Limiter struct {
	limit   int64
	current atomic.Int64
}

// New returns a limiter that admits up to limit requests at once.
func New(limit int) *Limiter { return &Limiter{limit: int64(limit)} }

// Enter tells whether a request is admitted. Every admitted request must call
// Leave when it ends. One request is admitted at any priority if no other is
// under way.
func (l *Limiter) Enter(p Priority) bool {
	if l.current.Add(1) > max(1, l.limit*int64(p)/100) {
		l.current.Add(-1)
		return false
	}
	return true
}

// Leave ends an admitted request.
func (l *Limiter) Leave() { l.current.Add(-1) }

// Current returns the number of requests under way.
func (l *Limiter) Current() int64 { return l.current.Load() }
