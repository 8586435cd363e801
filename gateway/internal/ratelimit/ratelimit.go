// Package ratelimit keeps each client to its share of the registry.
//
// A table of policies says what a request costs and how much may be used in any
// window of time, by client address for who has no key, by key and by tenant
// for who has one. The stores behind are limiter.Stores of ulule/limiter, but
// ours: the library counts in fixed windows, and lets a burst of up to twice
// the limit through where two of them meet. Ours divide a window into slots and
// count what was used until all of its slot has left the window.
//
// # What is promised
//
// Never more than the limit in any window, over all gateways on one Redis: that
// comes first. Redis lends tokens in leases, so that a busy client costs a
// round trip now and then and not one a request. What is lent counts as used
// from the moment it is lent until a window after the last moment it may be
// used, so leases let nothing extra through. They cost fairness instead, a
// little of it: tokens that one gateway holds and does not need are missing at
// the others until its next question, or for a window and a quarter if there is
// none. So a lease is a sixteenth of the limit at most, a quarter of the
// shortest window long, as large as the last one was used up, and never more
// than half of what is left: near the limit gateways borrow one by one.
//
// A client that comes now and then has no lease that is still good, and would
// cost a round trip a request. Where it is configured how many gateways there
// are, each keeps its part of an eighth of every limit apart and asks only when
// that is used up. The price is fairness again: who calls through one gateway
// alone has less by what the others keep.
//
// The promise has limits. What Redis forgets, gateways do not know of each
// other; each by itself still keeps to the limit. While Redis is away, in mode
// local, each counts up to its share, and tells Redis when it is back: a window
// in which Redis goes may see up to twice the limit if load shifts between
// gateways just then. The clock of Redis is taken at its word, unless it steps
// back. And all gateways on one Redis must have the same table.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/ulule/limiter/v3"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Client is who a request comes from.
type Client struct {
	Addr     netip.Addr
	Identity identity.Identity // anonymous: no valid key
}

// Limiter applies a table of policies. It is safe for concurrent use.
type Limiter struct {
	store   Store
	now     func() time.Time
	rules   []rule
	plans   map[planOf]*plan
	blocked blocked
	refused metric.Int64Counter
	pool    sync.Pool // of *scratch
}

// rule is a policy as it is applied.
type rule struct {
	Policy
	rates []limiter.Rate
}

// planOf names what applies to a request: by class, and with or without a key.
type planOf struct {
	class Class
	keyed bool
}

// plan is which rules apply, at what costs, and how they are told.
type plan struct {
	rules  []*rule
	costs  []int64
	policy string // the RateLimit-Policy header
}

// scratch is the memory of one decision.
type scratch struct {
	buckets []Bucket
	states  []State
}

// New returns a limiter by a valid table that counts in store, and counts
// refusals on meter.
func New(store Store, table Table, now func() time.Time, meter metric.Meter) (*Limiter, error) {
	refused, err := refusedCounter(meter)
	if err != nil {
		return nil, err
	}
	l := &Limiter{refused: refused, store: store, now: now, plans: map[planOf]*plan{}}
	l.pool.New = func() any { return &scratch{} }
	for _, p := range table {
		l.rules = append(l.rules, rule{p, p.rates()})
		l.refused.Add(context.Background(), 0, ofPolicy(p.Name)) // a counter that begins at its first event hides that one
	}
	for _, class := range []Class{List, Read, Write, Failed} {
		for _, keyed := range []bool{false, true} {
			l.plans[planOf{class, keyed}] = l.plan(class, keyed)
		}
	}
	return l, nil
}

func (l *Limiter) plan(class Class, keyed bool) *plan {
	p := &plan{}
	for i := range l.rules {
		r := &l.rules[i]
		if cost := r.Costs[class]; cost > 0 && keyed == (r.By != ByAddress) {
			p.rules, p.costs = append(p.rules, r), append(p.costs, cost)
		}
	}
	p.policy = policyText(p.rules)
	return p
}

// Admit counts a request, and tells in the answer's headers what is left. Over
// a limit it is a fault of kind TooMany; when it cannot be counted, and the
// configuration is to let nothing in then, one of kind Unavailable.
func (l *Limiter) Admit(ctx context.Context, answer http.Header, class Class, client Client) error {
	p := l.plans[planOf{class, !client.Identity.IsAnonymous()}]
	if len(p.rules) == 0 {
		return nil
	}
	s := l.pool.Get().(*scratch)
	defer l.pool.Put(s)
	s.fill(p, client)
	v, err := l.store.Take(ctx, s.buckets, s.states[:0])
	if err != nil {
		return uncounted(err)
	}
	if len(v.States) == 0 { // nothing is counted now
		return nil
	}
	s.states = v.States
	writeHeaders(answer, p.policy, v, l.now())
	if v.Wait == 0 {
		return nil
	}
	return l.tooMany(ctx, p, v)
}

func (s *scratch) fill(p *plan, client Client) {
	s.buckets = s.buckets[:0]
	for i, r := range p.rules {
		key := Key{Policy: r.Name}
		switch r.By {
		case ByAddress:
			key.Addr = clientaddr.Site(client.Addr)
		case ByKey:
			key.Name = client.Identity.KeyID
		case ByTenant:
			key.Name = client.Identity.Broker
		}
		s.buckets = append(s.buckets, Bucket{Key: key, Cost: p.costs[i], Rates: r.rates})
	}
}

func uncounted(err error) error {
	if !errors.Is(err, ErrAway) {
		return fmt.Errorf("count request: %w", err)
	}
	f := fault.New(fault.Unavailable, fault.URL, "registry", "The registry cannot count requests now; repeat the request.")
	return fmt.Errorf("%w: %w", f, err)
}

func (l *Limiter) tooMany(ctx context.Context, p *plan, v Verdict) error {
	rate, left := v.States[v.Refused].Rate, v.Refused
	for _, r := range p.rules {
		if left < len(r.rates) {
			l.countRefusal(ctx, r.Name)
			break
		}
		left -= len(r.rates)
	}
	f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
		"Too many requests: %s allows %d in %v; wait as Retry-After says.", rate.Formatted, rate.Limit, rate.Period)
	f.RetryAfter = max(time.Second, v.Wait)
	return f
}

// Fail counts an API key that was none, by the address that sent it. Over the
// limit it is a fault of kind TooMany.
func (l *Limiter) Fail(ctx context.Context, answer http.Header, client netip.Addr) error {
	p := l.plans[planOf{class: Failed}]
	if len(p.rules) == 0 {
		return nil
	}
	var s scratch
	s.fill(p, Client{Addr: client})
	v, err := l.store.Take(ctx, s.buckets, nil)
	if err != nil {
		return uncounted(err)
	}
	now := l.now()
	for _, state := range v.States {
		if state.Left == 0 { // the next one need not be looked at
			l.blocked.add(clientaddr.Site(client), now, now.Add(max(state.Next, v.Wait)))
		}
	}
	if v.Wait == 0 {
		return nil
	}
	writeHeaders(answer, p.policy, v, now)
	return l.tooMany(ctx, p, v)
}

// MayTry tells whether the keys that an address sends are looked at. If it
// has sent too many that were none, it is a fault of kind TooMany.
func (l *Limiter) MayTry(ctx context.Context, client netip.Addr) error {
	wait := l.blocked.wait(clientaddr.Site(client), l.now)
	if wait <= 0 {
		return nil
	}
	for _, r := range l.plans[planOf{class: Failed}].rules {
		l.countRefusal(ctx, r.Name)
	}
	f := fault.New(fault.TooMany, fault.Header, "Authorization", "Too many API keys from your address were wrong; wait as Retry-After says.")
	f.RetryAfter = wait
	return f
}

// Standing is what is left to a client under one rate, as GET /me tells it.
type Standing struct {
	Policy string          `json:"policy"`
	By     By              `json:"by"`
	Costs  map[Class]int64 `json:"costs"`
	Window int64           `json:"window"` // seconds
	Limit  int64           `json:"limit"`
	Left   int64           `json:"remaining"`
	Reset  int64           `json:"reset"` // seconds until more is left
}

// Look tells what is left to a client with a key, in the headers too, and
// counts nothing.
func (l *Limiter) Look(ctx context.Context, answer http.Header, client Client) ([]Standing, error) {
	all := &plan{}
	for i := range l.rules {
		if l.rules[i].By != ByAddress {
			all.rules, all.costs = append(all.rules, &l.rules[i]), append(all.costs, 0)
		}
	}
	if len(all.rules) == 0 {
		return []Standing{}, nil
	}
	var s scratch
	s.fill(all, client)
	states, err := l.store.Look(ctx, s.buckets, nil)
	if err != nil {
		return nil, uncounted(err)
	}
	writeHeaders(answer, policyText(all.rules), Verdict{States: states}, l.now())
	standings := make([]Standing, 0, len(states))
	for _, r := range all.rules {
		for range r.rates {
			state := states[len(standings)]
			standings = append(standings, Standing{
				Policy: r.Name, By: r.By, Costs: r.Costs,
				Window: int64(state.Rate.Period / time.Second), Limit: state.Rate.Limit, Left: state.Left, Reset: seconds(state.Next),
			})
		}
	}
	return standings, nil
}
