package upstream

import (
	"hash/maphash"
	"net/http"
	"sync"
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

// A retry costs as much as ten requests earn.
const (
	retryCost = 10  // tenths of a retry
	maxBudget = 100 // tenths of a retry that a new budget has; no budget has more
)

// retryBudget allows one retry for ten requests.
type retryBudget struct {
	tenths atomic.Int64 // tenths of a retry that are left
}

func (b *retryBudget) earn() {
	if b.tenths.Load() < maxBudget {
		b.tenths.Add(1)
	}
}

// spend pays for a retry. It returns false if too little is left.
func (b *retryBudget) spend() bool {
	for {
		has := b.tenths.Load()
		if has < retryCost {
			return false
		}
		if b.tenths.CompareAndSwap(has, has-retryCost) {
			return true
		}
	}
}

const (
	crashTime  = 10 * time.Second // time for which a request is remembered
	maxCrashes = 4096             // maximum number of requests that are remembered
)

// crashes remembers requests that got no answer, perhaps because the server crashed. If a request itself caused the
// crash, a retry of the request would crash the next server.
type crashes struct {
	seed maphash.Seed
	mu   sync.Mutex
	last map[uint64]time.Time // the last time at which a request got no answer, by the key of the request
}

func newCrashes() *crashes {
	return &crashes{seed: maphash.MakeSeed(), last: map[uint64]time.Time{}}
}

// mayRepeat records that a request got no answer. It returns false if the same request got no answer at an earlier try
// within crashTime. It also returns false if too many different requests got no answer in this time.
func (c *crashes) mayRepeat(r *http.Request, now time.Time) bool {
	key := c.key(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.last[key]
	if known && now.Sub(last) < crashTime {
		return false
	}
	if len(c.last) >= maxCrashes {
		c.forget(now)
	}
	if len(c.last) >= maxCrashes { // no single request caused so many failures; retries would cause more failures
		return false
	}
	c.last[key] = now
	return true
}

// forget deletes the requests that are older than crashTime.
func (c *crashes) forget(now time.Time) {
	for key, last := range c.last {
		if now.Sub(last) >= crashTime {
			delete(c.last, key)
		}
	}
}

// key is a hash of a request's method, path, query and Idempotency-Key.
func (c *crashes) key(r *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, text := range []string{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Idempotency-Key")} {
		h.WriteString(text)
		h.WriteByte(0)
	}
	return h.Sum64()
}
