package upstream

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// RoundTrip sends a request to one of the servers and ignores the host of its
// URL. The connection is free again once the answer's body was read to its end
// or closed. RoundTrip returns ErrNoServer, the context's error, or the error
// of the last server that it tried.
func (p *Pool) RoundTrip(r *http.Request) (*http.Response, error) {
	p.budget.earn()
	repeatable, body := isRepeatable(r), r.Body
	var (
		tried    []*server
		reusable *server // the connection to this server was stale, so the request may go to it again
		repeated bool
		failure  error
	)
	for {
		s := cmp.Or(p.pick(tried), reusable)
		if s == nil {
			closeBody(r)
			if failure == nil {
				failure = fmt.Errorf("%s: %w", p.name, ErrNoServer)
			}
			return nil, failure
		}
		resp, progress, err := s.exchange(r, body)
		s.record(r.Context(), err)
		if err == nil {
			return resp, nil
		}
		failure = fmt.Errorf("%s at %s: %w", p.name, s.addr, err)
		if r.Context().Err() != nil || progress > foundClosed && (repeated || !p.mayRepeat(r, repeatable, progress)) {
			closeBody(r)
			return nil, failure
		}
		repeated = repeated || progress > foundClosed
		if progress != notSent && r.GetBody != nil {
			if body, err = r.GetBody(); err != nil {
				return nil, failure
			}
		}
		p.retries.Add(r.Context(), 1, p.attributes)
		tried, reusable = append(tried, s), nil
		if progress == foundClosed || progress == sentOnReused {
			reusable = s
		}
	}
}

// mayRepeat reports whether a request that was sent and not answered may be sent again. A retry uses up a part of the
// budget. But if the request was sent on a reused connection, the retry uses up nothing, because the server had
// probably closed this connection before the request came.
func (p *Pool) mayRepeat(r *http.Request, repeatable bool, progress progress) bool {
	if !repeatable || !p.crashes.mayRepeat(r, time.Now()) {
		return false
	}
	return progress == sentOnReused || p.budget.spend()
}

// isRepeatable reports whether a server may carry out a request twice.
func isRepeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return !hasBody(r)
	}
	_, marked := r.Header["Idempotency-Key"]
	return marked && r.GetBody != nil
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// closeBody closes the request's body. An http.RoundTripper must close it even when it fails.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // the request has failed anyway
	}
}

// pick returns the best server that was not tried yet, or nil if there is no such server. It prefers servers
// that are ready, and among these the server with the fewest requests under way.
func (p *Pool) pick(tried []*server) *server {
	servers := *p.servers.Load()
	now := time.Now()
	var best *server
	start := int(p.turn.Add(1) % uint64(len(servers)))
	for i := range servers {
		s := servers[(start+i)%len(servers)]
		if slices.Contains(tried, s) || s.breaker.isOpen(now) {
			continue
		}
		if best == nil || s.isBetter(best) {
			best = s
		}
	}
	if best != nil && !best.breaker.admit(now) { // meanwhile another request has become the breaker's trial
		return p.pick(append(tried, best))
	}
	return best
}

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
