package ratelimit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// inOrder moves the rules that count bytes behind the others.
func inOrder(rules []rule) {
	place := func(r rule) int {
		if r.inBytes() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(rules, func(a, b rule) int { return place(a) - place(b) })
}

// hasOwn reports whether a client has limits that differ from the table's. If there is no table, nobody has limits.
// Only a client with a key can have such limits, and the rules for addresses do not apply to this client.
func (l *Limiter) hasOwn(c Client) bool {
	return len(l.rules) > 0 && (c.Raise > 1 || len(c.Limits) > 0)
}

// planOf returns the plan for a request. If the client's limits differ from the table's, planOf makes a new plan
// each time.
func (l *Limiter) planOf(r Request) *plan {
	of := planOf{r.Class, !r.Client.Identity.IsAnonymous()}
	if !l.hasOwn(r.Client) {
		return l.plans[of]
	}
	return planFor(l.rulesFor(r.Client), of)
}

// rulesFor returns the rules for a client: the rules of the table, raised for its broker, and the limits of its
// key. Limits that differ from the table's are counted separately. So when these limits begin or end, a client
// may use up the old and the new limits within one window.
func (l *Limiter) rulesFor(c Client) []rule {
	if !l.hasOwn(c) {
		return l.rules
	}
	rules := slices.Clone(l.rules)
	if c.Raise > 1 {
		for i := range rules {
			rules[i] = rules[i].raised(c.Raise)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(c.Limits)) {
		p := Policy{
			Name: "limits-" + class, By: ByKey, Costs: map[Class]int64{Class(class): 1}, Windows: c.Limits[class],
		}
		rules = append(rules, rule{Policy: p, rates: p.rates(), mark: markOf(p.Windows)})
	}
	inOrder(rules)
	return rules
}

// raised returns the rule with its limits multiplied by the argument `times`.
func (r rule) raised(times int64) rule {
	r.rates = slices.Clone(r.rates)
	for i := range r.rates {
		r.rates[i].Limit *= times
	}
	r.mark = fmt.Sprintf("~%d", times)
	return r
}

// markOf returns the mark of a key's limits. Different limits have different marks. Requests under
// different marks are counted separately, because a counter must keep the same limits as long as it exists.
func markOf(windows map[string]int64) string {
	var mark strings.Builder
	for _, window := range slices.Sorted(maps.Keys(windows)) {
		fmt.Fprintf(&mark, "~%s=%d", window, windows[window])
	}
	return mark.String()
}

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
