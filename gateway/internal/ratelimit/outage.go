package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/sleep"
)

// Fallback says how a gateway decides about requests while Redis is down.
type Fallback string

// The fallbacks.
const (
	FallbackLocal  Fallback = "local"  // count in memory, up to this gateway's share of each limit
	FallbackOpen   Fallback = "open"   // admit everything
	FallbackClosed Fallback = "closed" // refuse everything
)

// ErrStoreDown is returned for every request while Redis is down and the
// fallback is FallbackClosed.
var ErrStoreDown = errors.New("the store of the rate limits is down")

// The first and the longest pause between two probes of a Redis that is down. Each pause is twice as long as
// the one before.
const (
	firstProbe = 20 * time.Millisecond
	lastProbe  = 500 * time.Millisecond
)

// markDown makes all requests continue without Redis from now on.
func (s *Borrower) markDown(cause error) {
	if s.down.CompareAndSwap(false, true) {
		s.outages.Add(1)
		s.outage <- cause // does not block: monitor takes each cause before it makes s.down false again
	}
}

// monitor logs each outage, and probes Redis until it works again.
func (s *Borrower) monitor(ctx context.Context) {
	for {
		var cause error
		select {
		case cause = <-s.outage:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		since, before := s.config.Now(), s.unaided.Load()
		s.config.Log.Warn("the limits' Redis does not answer; going on without it",
			"mode", string(s.config.Fallback), "times", s.outages.Load(), "error", cause)
		if !s.awaitRecovery(ctx) {
			return
		}
		s.down.Store(false)
		// Report a second time: while the last report ran, requests may have been decided without Redis.
		if err := s.report(ctx); err != nil && !errors.Is(err, errUnderWay) {
			s.markDown(err)
		}
		s.config.Log.Info("the limits' Redis answers again",
			"seconds", s.config.Now().Sub(since).Seconds(), "requests", s.unaided.Load()-before)
	}
}

// awaitRecovery returns true when Redis works again and knows what was used during the outage. It returns false
// if ctx ends first.
func (s *Borrower) awaitRecovery(ctx context.Context) bool {
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		if !sleep.For(ctx, pause) {
			return false
		}
		if s.probe(ctx) == nil && s.report(ctx) == nil {
			return true
		}
	}
}

// probe returns nil if Redis answers, runs scripts and accepts writes.
func (s *Borrower) probe(ctx context.Context) error {
	b := Bucket{Key: Key{Policy: "probe"}, Rates: []limiter.Rate{{Period: time.Second, Limit: 1 << 40}}}
	return s.redis.run(ctx, []*scriptCall{{key: redisKey(&b), rates: b.Rates, least: 1, most: 1}})
}

// errUnderWay says that calls from before the outage are not finished. If they fail, there is more to report.
var errUnderWay = errors.New("calls to Redis are under way")

// report tells Redis how much was used during the outage. The gateway does this before it borrows tokens again.
func (s *Borrower) report(ctx context.Context) error {
	var reports []*renewal
	var underWay bool
	now := s.clock.elapsed()
	for i := range s.table.parts {
		more, waits := s.table.parts[i].reports(now, s.config.Gateways)
		reports, underWay = append(reports, more...), underWay || waits
	}
	for len(reports) > 0 {
		n := min(len(reports), maxBatch)
		err := s.roundTrip(ctx, reports[:n])
		s.finish(reports[:n], err)
		reports = reports[n:]
		if err != nil {
			s.finish(reports, err)
			return err
		}
	}
	if underWay {
		return errUnderWay
	}
	return nil
}

// reports returns a call for each entry with unreported tokens. The result `underWay` is true if an entry already
// has a call that is not finished.
func (p *part) reports(now, gateways int64) (reports []*renewal, underWay bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, e := range p.entries {
		e.mu.Lock()
		underWay = underWay || e.loan.renewal != nil
		if e.loan.unreported > 0 && now < e.loan.unreportedUntil && e.loan.renewal == nil {
			key := redisKey(&Bucket{Key: k, Rates: e.rates})
			reports = append(reports, e.renew(now, key, 0, gateways))
		}
		e.mu.Unlock()
	}
	return reports, underWay
}
