package upstream

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// RoundTrip sends a request to one of the servers and ignores the host of its
// URL. The connection is free again once the answer's body was read to its end
// or closed. RoundTrip returns ErrNoServer, the context's error, or the error
// of the last server that it tried.
func (p *Pool) RoundTrip(r *http.Request) (*http.Response, error) {
	p.budget.earn()
	repeatable, body := isRepeatable(r), r.Body
	// A request that cannot be repeated must not fail on a stale connection. A request with a body should not fail on
	// one either, because the retry would send the body a second time.
	check := connCheck(!repeatable || hasBody(r))
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
		resp, progress, err := s.exchange(r, body, check)
		s.record(r.Context(), err)
		if err == nil {
			return resp, nil
		}
		failure = fmt.Errorf("%s at %s: %w", p.name, s.addr, err)
		if r.Context().Err() != nil || progress != notSent && (repeated || !p.mayRepeat(r, repeatable, progress)) {
			closeBody(r)
			return nil, failure
		}
		if progress != notSent {
			repeated, check = true, openConn
			if r.GetBody != nil {
				if body, err = r.GetBody(); err != nil {
					return nil, failure
				}
			}
		}
		p.retries.Add(r.Context(), 1, p.attributes)
		tried, reusable = append(tried, s), nil
		if progress == sentOnReused {
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
