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
	"asset-registry/shared/routes"
)

// Client is whom a request is counted for.
type Client struct {
	Addr     netip.Addr
	Identity identity.Identity // anonymous without a valid key

	Raise  int64                       // the limits of the broker's keys are so many times those of the table; 0: once
	Limits map[string]map[string]int64 // further limits of the key: requests by class and window
}

// Request is what Admit counts.
type Request struct {
	Class  Class // of package routes; for the body of a write that is counted already, Bytes or FileBytes
	Client Client
	Body   int64 // size in bytes, with class Write, Bytes or FileBytes
}

// Limiter applies a table of policies. It is safe for concurrent use.
type Limiter struct {
	store     Store
	now       func() time.Time
	rules     []rule // those that count bytes last
	plans     map[planOf]*plan
	wrongKeys []wrongKeyRate
	lockouts  lockouts
	refused   metric.Int64Counter
	pool      sync.Pool // of *scratch
}

// rule is a policy with its rates.
type rule struct {
	Policy
	rates []limiter.Rate
	mark  string // of limits that are not those of the table; part of the key that counts for them
}

// planOf identifies a plan: by class, and with or without an API key.
type planOf struct {
	class Class
	keyed bool
}

// plan holds the rules and costs for one class of request, and the
// RateLimit-Policy header to send.
type plan struct {
	rules   []*rule // those that count bytes last
	costs   []int64 // by rule
	perByte []int64 // by rule: the cost of each byte of the body, added to the cost
	policy  string  // the RateLimit-Policy header
	inBytes int     // index of the first rate that counts bytes, over all rules
}

// scratch is reusable memory for one decision.
type scratch struct {
	buckets []Bucket
	states  []State
}

// New returns a limiter for a valid table. It counts requests in store, and
// refusals on meter.
func New(store Store, table Table, now func() time.Time, meter metric.Meter) (*Limiter, error) {
	refused, err := refusedCounter(meter)
	if err != nil {
		return nil, err
	}
	l := &Limiter{refused: refused, store: store, now: now, plans: map[planOf]*plan{}}
	l.pool.New = func() any { return &scratch{} }
	for _, p := range table {
		l.rules = append(l.rules, rule{Policy: p, rates: p.rates()})
		l.refused.Add(context.Background(), 0, ofPolicy(p.Name)) // without a zero first, a rate misses the first event
	}
	inOrder(l.rules)
	for _, class := range append(routes.Classes(), Bytes, FileBytes, Failed) {
		for _, keyed := range []bool{false, true} {
			of := planOf{class, keyed}
			l.plans[of] = planFor(l.rules, of)
		}
	}
	l.wrongKeys = wrongKeyRates(store, l.rules, now)
	return l, nil
}

// planFor makes the plan of a class of request from all rules.
func planFor(rules []rule, of planOf) *plan {
	p := &plan{}
	for i := range rules {
		r := &rules[i]
		cost := r.Costs[of.class]
		if cost == 0 || of.keyed != (r.By != ByAddress) {
			continue
		}
		switch of.class {
		case Bytes, FileBytes:
			p.add(r, 0, 1)
		case routes.Write:
			p.add(r, cost, r.Costs[Bytes])
		default:
			p.add(r, cost, 0)
		}
	}
	p.policy = policyHeader(p.rules)
	return p
}

func (p *plan) add(r *rule, cost, perByte int64) {
	p.rules, p.costs, p.perByte = append(p.rules, r), append(p.costs, cost), append(p.perByte, perByte)
	if !r.inBytes() {
		p.inBytes += len(r.rates)
	}
}

// Admit counts a request, and sets the rate limit headers of its answer. It
// returns a fault of kind TooMany above a limit, and one of kind Unavailable if
// the store is down and the fallback refuses everything.
func (l *Limiter) Admit(ctx context.Context, answer http.Header, r Request) error {
	p := l.planOf(r)
	ofBody := r.Class == Bytes || r.Class == FileBytes
	if len(p.rules) == 0 || ofBody && r.Body == 0 {
		return nil
	}
	s := l.pool.Get().(*scratch)
	defer l.pool.Put(s)
	s.fill(p, r.Client, r.Body)
	v, err := l.store.Take(ctx, s.buckets, s.states[:0])
	if err != nil {
		return uncounted(err)
	}
	if len(v.States) == 0 { // nothing is counted at the moment
		return nil
	}
	s.states = v.States
	if ofBody {
		updateHeaders(answer, p, v, l.now())
	} else {
		writeHeaders(answer, p, v, l.now())
	}
	if v.Wait == 0 {
		return nil
	}
	return l.tooMany(ctx, p, v)
}

// fill makes the buckets of a plan for a client, with a body of so many bytes.
func (s *scratch) fill(p *plan, client Client, body int64) {
	s.buckets = s.buckets[:0]
	for i, r := range p.rules {
		key := Key{Policy: r.Name}
		switch r.By {
		case ByAddress:
			key.Addr = clientaddr.Network(client.Addr)
		case ByKey:
			key.Name = client.Identity.KeyID + r.mark
		case ByTenant:
			key.Name = client.Identity.Broker + r.mark
		}
		s.buckets = append(s.buckets, Bucket{Key: key, Cost: p.costs[i] + p.perByte[i]*body, Rates: r.rates})
	}
}

// uncounted returns the error for a request that the store could not count.
func uncounted(err error) error {
	if !errors.Is(err, ErrStoreDown) {
		return fmt.Errorf("count request: %w", err)
	}
	f := fault.New(fault.Unavailable, fault.URL, "registry", "The registry cannot count requests now; repeat the request.")
	return fmt.Errorf("%w: %w", f, err)
}

// tooMany counts a refusal and returns its fault.
func (l *Limiter) tooMany(ctx context.Context, p *plan, v Verdict) error {
	rate, index := v.States[v.Refused].Rate, v.Refused
	for _, r := range p.rules {
		if index < len(r.rates) {
			l.countRefusal(ctx, r.Name)
			break
		}
		index -= len(r.rates)
	}
	unit := "requests"
	if v.Refused >= p.inBytes {
		unit = "bytes written"
	}
	f := fault.New(fault.TooMany, fault.Header, LimitHeader,
		"Too many %s: %s allows %d in %v; wait as Retry-After says.", unit, rate.Formatted, rate.Limit, rate.Period)
	f.RetryAfter = max(time.Second, v.Wait)
	return f
}

// Quota is what is left to a client of one rate, as GET /me shows it.
type Quota struct {
	Policy string          `json:"policy"`
	By     By              `json:"by"`
	Costs  map[Class]int64 `json:"costs"`
	Window int64           `json:"window"` // seconds
	Limit  int64           `json:"limit"`
	Left   int64           `json:"remaining"`
	Reset  int64           `json:"reset"` // seconds until more is left
}

// Quotas returns what is left to a client with an API key, and sets the rate
// limit headers of the answer. It counts nothing.
func (l *Limiter) Quotas(ctx context.Context, answer http.Header, client Client) ([]Quota, error) {
	all := &plan{}
	rules := l.rulesFor(client)
	for i := range rules {
		if rules[i].By != ByAddress {
			all.add(&rules[i], 0, 0)
		}
	}
	if len(all.rules) == 0 {
		return []Quota{}, nil
	}
	var s scratch
	s.fill(all, client, 0)
	states, err := l.store.Peek(ctx, s.buckets, nil)
	if err != nil {
		return nil, uncounted(err)
	}
	all.policy = policyHeader(all.rules)
	writeHeaders(answer, all, Verdict{States: states}, l.now())
	quotas := make([]Quota, 0, len(states))
	for _, r := range all.rules {
		for range r.rates {
			state := states[len(quotas)]
			quotas = append(quotas, Quota{
				Policy: r.Name, By: r.By, Costs: r.Costs, Window: int64(state.Rate.Period / time.Second),
				Limit: state.Rate.Limit, Left: state.Left, Reset: seconds(state.Next),
			})
		}
	}
	return quotas, nil
}
