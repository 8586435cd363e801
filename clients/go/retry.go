package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// Retry bounds the retries of one call. The package comment says what is retried.
type Retry struct {
	Tries int           // maximum number of tries, the first included; 0: 6
	Total time.Duration // time from the start of the first try in which further tries may begin; 0: 1 min
}

func (r Retry) orDefault() Retry {
	return Retry{Tries: cmp.Or(r.Tries, 6), Total: cmp.Or(r.Total, time.Minute)}
}

// The pauses before a retry without Retry-After double from firstPause to longestPause.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
)

// tries counts the tries of one call.
type tries struct {
	left int
	end  time.Time // no try begins after this time
	wait time.Duration
}

// start begins to count the tries of a call. The first try counts as begun.
func (r Retry) start() *tries {
	return &tries{left: r.Tries - 1, end: time.Now().Add(r.Total), wait: firstPause}
}

// pause waits before the next try. If there must be no next try, it returns false without a wait. This is so if the
// tries are used up, or if the pause would end too late for Retry.Total or for ctx.
func (t *tries) pause(ctx context.Context, err error) bool {
	wait := t.wait
	t.wait = min(2*t.wait, longestPause)
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.RetryAfter > 0 {
		wait = refusal.RetryAfter
	}
	wait = jitter(wait)
	next := time.Now().Add(wait)
	if end, ok := ctx.Deadline(); t.left <= 0 || next.After(t.end) || ok && next.After(end) {
		return false
	}
	t.left--
	return sleep(ctx, wait)
}

// jitter returns a duration with up to a tenth more, so that clients that were
// refused together come back at different times.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// end says how a failed try ended.
type end int

const (
	final   end = iota // another try would get the same answer
	nothing            // the registry did nothing
	unknown            // the registry may have carried out the request
)

// endOf returns the end of a try that failed with err.
func endOf(err error) end {
	if refusal, ok := errors.AsType[*Error](err); ok {
		switch refusal.Status {
		case http.StatusTooManyRequests:
			return nothing
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return unknown
		}
		return final
	}
	if errors.Is(err, errTooLarge) || errors.Is(err, errLongMessage) || errors.Is(err, errForeign) ||
		errors.Is(err, errNoPage) || errors.Is(err, errNotOurs) || errors.Is(err, ErrSegment) || errors.Is(err, errNoID) {
		return final
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return final
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op == "dial" {
		return nothing
	}
	return unknown
}
