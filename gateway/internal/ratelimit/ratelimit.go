// Package ratelimit keeps each client to its share of the registry.
//
// A table of policies says what a request costs and how much may be used in any
// window of time, by client address for who has no key, by key and by tenant
// for who has one. The stores behind are limiter.Stores of ulule/limiter, but
// ours: the library counts in fixed windows, and lets a burst of up to twice
// the limit through where two of them meet. Ours divide a window into slots and
// count what was used until all of its slot has left the window.
//
// Most policies count requests. One that costs Bytes counts what writes bring:
// some bytes for each write, and its body. Both are taken before the body is
// read, by its Content-Length. A body without one is counted once it has been
// read, and refused if too little is left.
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
// back. And all gateways on one Redis must have the same table. A refusal tells
// how long to wait by the counts of this gateway and the last answer of Redis: a
// gateway that refuses by its own count does not ask whether what others let
// through makes the wait longer, which the next refusal tells.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
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

// Request is what is counted.
type Request struct {
	Class  Class // Bytes: more of the body of a write that was counted before
	Client Client
	Body   int64 // bytes, of a write or of class Bytes
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
	rules   []*rule // those that count bytes come last
	costs   []int64
	perByte []int64 // cost of each byte of a body, beside that
	policy  string  // the RateLimit-Policy header
	inBytes int     // the first rate that counts bytes
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
	slices.SortStableFunc(l.rules, func(a, b rule) int { return int(a.Costs[Bytes] - b.Costs[Bytes]) })
	for _, class := range []Class{List, Read, Write, Bytes, Failed} {
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
		cost := r.Costs[class]
		if cost == 0 || keyed != (r.By != ByAddress) {
			continue
		}
		switch class {
		case Bytes:
			p.add(r, 0, 1)
		case Write:
			p.add(r, cost, r.Costs[Bytes])
		default:
			p.add(r, cost, 0)
		}
	}
	p.policy = policyText(p.rules)
	return p
}

func (p *plan) add(r *rule, cost, perByte int64) {
	p.rules, p.costs, p.perByte = append(p.rules, r), append(p.costs, cost), append(p.perByte, perByte)
	if !r.inBytes() {
		p.inBytes += len(r.rates)
	}
}

// Admit counts a request, and tells in the answer's headers what is left. Over
// a limit it is a fault of kind TooMany; when it cannot be counted, and the
// configuration is to let nothing in then, one of kind Unavailable.
func (l *Limiter) Admit(ctx context.Context, answer http.Header, r Request) error {
	p := l.plans[planOf{r.Class, !r.Client.Identity.IsAnonymous()}]
	if len(p.rules) == 0 || r.Class == Bytes && r.Body == 0 {
		return nil
	}
	s := l.pool.Get().(*scratch)
	defer l.pool.Put(s)
	s.fill(p, r.Client, r.Body)
	v, err := l.store.Take(ctx, s.buckets, s.states[:0])
	if err != nil {
		return uncounted(err)
	}
	if len(v.States) == 0 { // nothing is counted now
		return nil
	}
	s.states = v.States
	if r.Class == Bytes {
		addHeaders(answer, p, v, l.now())
	} else {
		writeHeaders(answer, p, v, l.now())
	}
	if v.Wait == 0 {
		return nil
	}
	return l.tooMany(ctx, p, v)
}

func (s *scratch) fill(p *plan, client Client, body int64) {
	s.buckets = s.buckets[:0]
	for i, r := range p.rules {
		key := Key{Policy: r.Name}
		switch r.By {
		case ByAddress:
			key.Addr = clientaddr.Network(client.Addr)
		case ByKey:
			key.Name = client.Identity.KeyID
		case ByTenant:
			key.Name = client.Identity.Broker
		}
		s.buckets = append(s.buckets, Bucket{Key: key, Cost: p.costs[i] + p.perByte[i]*body, Rates: r.rates})
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
	many := "requests"
	if v.Refused >= p.inBytes {
		many = "bytes written"
	}
	f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
		"Too many %s: %s allows %d in %v; wait as Retry-After says.", many, rate.Formatted, rate.Limit, rate.Period)
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
	s.fill(p, Client{Addr: client}, 0)
	v, err := l.store.Take(ctx, s.buckets, nil)
	if err != nil {
		return uncounted(err)
	}
	now := l.now()
	wait := v.Wait
	for _, state := range v.States {
		if state.Left == 0 { // the next one need not be looked at
			wait = max(wait, state.Next)
		}
	}
	if wait > 0 {
		l.blocked.add(clientaddr.Network(client), now, now.Add(wait))
	}
	if v.Wait == 0 {
		return nil
	}
	v.Wait = wait // which all its keys have from now on
	writeHeaders(answer, p, v, now)
	return l.tooMany(ctx, p, v)
}

// MayTry tells whether the keys that an address sends are looked at. If it
// has sent too many that were none, it is a fault of kind TooMany.
func (l *Limiter) MayTry(ctx context.Context, client netip.Addr) error {
	wait := l.blocked.wait(clientaddr.Network(client), l.now)
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
			all.add(&l.rules[i], 0, 0)
		}
	}
	if len(all.rules) == 0 {
		return []Standing{}, nil
	}
	var s scratch
	s.fill(all, client, 0)
	states, err := l.store.Look(ctx, s.buckets, nil)
	if err != nil {
		return nil, uncounted(err)
	}
	all.policy = policyText(all.rules)
	writeHeaders(answer, all, Verdict{States: states}, l.now())
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
