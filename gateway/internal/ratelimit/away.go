package ratelimit

import (
	"context"
	"time"

	"github.com/ulule/limiter/v3"
)

// trip makes every request go on without Redis from now on.
func (s *Shared) trip(why error) {
	if s.away.CompareAndSwap(false, true) {
		s.entered.Add(1)
		s.tripped <- why // watch takes it: there is none before the last was dealt with
	}
}

// watch tells that Redis is away, and asks after it until it is back.
func (s *Shared) watch(ctx context.Context) {
	for {
		var why error
		select {
		case why = <-s.tripped:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		since, before := s.config.Now(), s.alone.Load()
		s.config.Log.Warn("the limits' Redis does not answer; going on without it", "mode", string(s.config.Away), "times", s.entered.Load(), "error", why)
		if !s.awaitReturn(ctx) {
			return
		}
		s.away.Store(false)
		s.config.Log.Info("the limits' Redis answers again", "seconds", s.config.Now().Sub(since).Seconds(), "requests", s.alone.Load()-before)
	}
}

func (s *Shared) awaitReturn(ctx context.Context) bool {
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
		if s.probe(ctx) == nil && s.report(ctx) == nil {
			return true
		}
	}
}

// probe asks for what every request may need: a Redis that answers, runs
// scripts and takes writes.
func (s *Shared) probe(ctx context.Context) error {
	b := Bucket{Key: Key{Policy: "probe"}, Rates: []limiter.Rate{{Period: time.Second, Limit: 1 << 40}}}
	return s.redis.run(ctx, []*ask{{key: redisKey(&b), rates: b.Rates, least: 1, most: 1}})
}

// report tells Redis what was used without it, before any gateway borrows again.
func (s *Shared) report(ctx context.Context) error {
	var flights []*flight
	now := s.clock.elapsed()
	for i := range s.table.parts {
		flights = append(flights, s.table.parts[i].unreported(now, s.kept())...)
	}
	for len(flights) > 0 {
		n := min(len(flights), maxBatch)
		err := s.fly(ctx, flights[:n])
		s.landAll(flights[:n], err)
		flights = flights[n:]
		if err != nil {
			s.landAll(flights, err)
			return err
		}
	}
	return nil
}

func (p *part) unreported(now, kept int64) (flights []*flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, e := range p.entries {
		e.mu.Lock()
		if e.lease.unlent > 0 && now < e.lease.unlentUntil && e.lease.flight == nil {
			flights = append(flights, e.depart(now, redisKey(&Bucket{Key: k, Rates: e.rates}), 0, kept))
		}
		e.mu.Unlock()
	}
	return flights
}
