package upstream

import (
	"sync/atomic"
	"time"
)

const (
	maxFailures = 5           // failures in a row that open the breaker
	openFor     = time.Second // how long an open breaker waits before it admits a trial request
)

// breaker is a circuit breaker. The zero value is closed.
type breaker struct {
	failures atomic.Int64 // failures in a row
	until    atomic.Int64 // an open breaker admits a trial from this Unix time on, in nanoseconds
	trial    atomic.Bool  // a trial request is under way
}

// isOpen reports whether admit would refuse a request.
func (b *breaker) isOpen(now time.Time) bool {
	return b.failures.Load() >= maxFailures && (now.UnixNano() < b.until.Load() || b.trial.Load())
}

// admit reports whether a request may be sent. An open breaker admits one
// request as a trial. Each admitted request must end with succeed, abandon or
// fail.
func (b *breaker) admit(now time.Time) bool {
	if b.failures.Load() < maxFailures {
		return true
	}
	return now.UnixNano() >= b.until.Load() && b.trial.CompareAndSwap(false, true)
}

// succeed closes the breaker.
func (b *breaker) succeed() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
		b.trial.Store(false)
	}
}

// abandon ends an admitted request whose result says nothing about the server's health.
func (b *breaker) abandon() { b.trial.Store(false) }

// fail counts a failure. It reports whether this failure opened the breaker.
func (b *breaker) fail(now time.Time) bool {
	b.until.Store(now.Add(openFor).UnixNano())
	b.trial.Store(false)
	return b.failures.Add(1) == maxFailures
}
