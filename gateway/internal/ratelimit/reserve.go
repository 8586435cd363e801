package ratelimit

import "time"

// reservePart is the part of each limit that the gateways reserve, if their number is configured: an eighth. Each
// gateway admits requests from its share of the reserve without asking Redis. Redis lends the rest of the limit. So
// a client that rarely sends requests needs no round trips.
//
// A gateway that has just started, or has read its settings again, does not know how much it took from the reserve
// before. So it uses the reserve of a rate only when one period of the rate has passed since the start.
const reservePart = 8

// reserveOf returns one gateway's share of the reserve. It is 0 if the number of gateways is unknown (0).
func reserveOf(limit, gateways int64) int64 {
	if gateways == 0 {
		return 0
	}
	return limit / reservePart / gateways
}

// reserveWait returns how long a request must wait until this gateway's reserve admits it. The result `ok` is false
// if the request costs more than the reserve.
func (s *Borrower) reserveWait(e *entry, b *Bucket, now int64) (wait time.Duration, ok bool) {
	for i := range b.Rates {
		reserve := reserveOf(b.Rates[i].Limit, s.config.Gateways)
		if reserve < b.Cost {
			return 0, false
		}
		wait = max(wait, b.Rates[i].Period-time.Duration(now))
		if e.reserve != nil {
			wait = max(wait, e.reserve[i].wait(now, b.Cost, reserve, b.Rates[i].Period))
		}
	}
	return wait, true
}

// hasReserve reports whether the reserve can admit a request now.
func (s *Borrower) hasReserve(e *entry, b *Bucket, now int64) bool {
	wait, ok := s.reserveWait(e, b, now)
	return ok && wait == 0
}

// loanWait returns how long a request must wait until Redis may lend it tokens, or until the reserve has room for
// it, whichever is sooner. The result `rate` is the index of the rate for which the request waits longest in Redis.
func (s *Borrower) loanWait(e *entry, b *Bucket, now int64) (wait time.Duration, rate int) {
	if e.loan.has(now, b.Cost) {
		return 0, 0
	}
	wait, rate = e.loan.wait(now, b.Cost)
	if reserve, ok := s.reserveWait(e, b, now); ok {
		wait = min(wait, reserve)
	}
	return wait, rate
}

// use takes the cost of a request from the loan, or from the reserve if the loan has too few tokens.
func (s *Borrower) use(e *entry, b *Bucket, now int64) {
	if e.loan.has(now, b.Cost) {
		e.loan.left -= b.Cost
		e.loan.last = now
		return
	}
	if e.reserve == nil {
		e.reserve = make([]window, len(b.Rates))
	}
	for i := range b.Rates {
		e.reserve[i].add(now, b.Cost, b.Rates[i].Period)
	}
}

// reserveLeft returns how much of this gateway's reserve of a rate is left.
func (s *Borrower) reserveLeft(e *entry, rate int, now int64) int64 {
	reserve := reserveOf(e.rates[rate].Limit, s.config.Gateways)
	if now < int64(e.rates[rate].Period) {
		return 0
	}
	if e.reserve == nil {
		return reserve
	}
	e.reserve[rate].forget(now, e.rates[rate].Period)
	return max(0, reserve-e.reserve[rate].used)
}
