package ratelimit

import "time"

// keptPart is which part of a limit gateways keep apart, an eighth, when it is
// known how many there are: each lets its share of that through without asking
// Redis, which lends the rest. So who comes now and then costs no round trips.
const keptPart = 8

// keptOf is what each of so many gateways keeps of a limit.
func keptOf(limit, gateways int64) int64 {
	if gateways == 0 {
		return 0
	}
	return limit / keptPart / gateways
}

// kept is how many gateways keep something; 0 if that is not known.
func (s *Shared) kept() int64 { return s.config.Gateways }

// keptWait tells how long a request must wait for what this gateway keeps. It
// is false if that is never enough.
func (s *Shared) keptWait(e *entry, b *Bucket, now int64) (wait time.Duration, ok bool) {
	for i := range b.Rates {
		kept := keptOf(b.Rates[i].Limit, s.kept())
		if kept < b.Cost || kept == 0 {
			return 0, false
		}
		if e.kept != nil {
			wait = max(wait, e.kept[i].wait(now, b.Cost, kept, b.Rates[i].Period))
		}
	}
	return wait, true
}

func (s *Shared) mayKeep(e *entry, b *Bucket, now int64) bool {
	wait, ok := s.keptWait(e, b, now)
	return ok && wait == 0
}

// lentWait tells how long a request must wait by what Redis has said, or for
// what this gateway keeps, whichever comes first; and for which rate.
func (s *Shared) lentWait(e *entry, b *Bucket, now int64) (wait time.Duration, rate int) {
	wait, rate = e.lease.wait(now, b.Cost)
	if wait == 0 || e.lease.has(now, b.Cost) {
		return 0, 0
	}
	if kept, ok := s.keptWait(e, b, now); ok {
		wait = min(wait, kept)
	}
	return wait, rate
}

// use takes from the lease if that has enough, and else from what is kept.
func (s *Shared) use(e *entry, b *Bucket, now int64) {
	if e.lease.has(now, b.Cost) {
		e.lease.left -= b.Cost
		e.lease.last = now
		return
	}
	if e.kept == nil {
		e.kept = make([]window, len(b.Rates))
	}
	for i := range b.Rates {
		e.kept[i].add(now, b.Cost, b.Rates[i].Period)
	}
}

// keptLeft is what is left of what this gateway keeps of a rate.
func (s *Shared) keptLeft(e *entry, rate int, now int64) int64 {
	kept := keptOf(e.rates[rate].Limit, s.kept())
	if e.kept == nil {
		return kept
	}
	e.kept[rate].forget(now, e.rates[rate].Period)
	return max(0, kept-e.kept[rate].used)
}
