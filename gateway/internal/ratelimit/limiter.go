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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
	"asset-registry/shared/telemetry"
)

// Client is the client for whom a request is counted.
type Client struct {
	Addr     netip.Addr
	Identity identity.Identity // anonymous if the request has no valid key

	Raise  int64                       // factor for the limits of the broker's keys; 0 or 1: they are not raised
	Limits map[string]map[string]int64 // additional limits of the key: numbers of requests by class and window
}

// Request describes what Admit counts.
type Request struct {
	Class  Class // a class of package routes; Bytes or FileBytes for the body of a write that was already counted
	Client Client
	Body   int64 // size in bytes, only for class Write, Bytes or FileBytes
}

// Limiter applies a table of policies. It is safe for concurrent use.
type Limiter struct {
	store     Store
	now       func() time.Time
	rules     []rule // the rules that count bytes come last
	plans     map[planOf]*plan
	wrongKeys []wrongKeyRate
	lockouts  lockouts
	refused   metric.Int64Counter
	pool      sync.Pool // has values of type *scratch
}

// rule is a policy with its rates.
type rule struct {
	Policy
	rates []limiter.Rate
	mark  string // suffix of the names of the counts; "" if the limits come from the table
}

// planOf identifies a plan: by the class of a request, and by whether the request has an API key.
type planOf struct {
	class Class
	keyed bool
}

// plan has the rules and costs that apply to one class of request, and the RateLimit-Policy header of the
// answers.
type plan struct {
	rules   []*rule // the rules that count bytes come last
	costs   []int64 // cost of a request, for each rule
	perByte []int64 // for each rule: additional cost of each byte of the body
	policy  string  // value of the RateLimit-Policy header
	inBytes int     // index of the first rate that counts bytes, among the rates of all rules
}

// scratch is reusable memory for one decision.
type scratch struct {
	buckets []Bucket
	states  []State
}

// New returns a limiter for a valid table. It keeps its counts in the given store, and counts refusals in a
// metric of meter.
func New(store Store, table Table, now func() time.Time, meter metric.Meter) *Limiter {
	refused := telemetry.Counter(meter, "registry.limits.refused", "{request}", "Requests over a rate limit, by policy.")
	l := &Limiter{refused: refused, store: store, now: now, plans: map[planOf]*plan{}}
	l.pool.New = func() any { return &scratch{} }
	for _, p := range table {
		l.rules = append(l.rules, rule{Policy: p, rates: p.rates()})
		// The counter begins with 0. Otherwise a query with rate() would miss the first refusal.
		l.refused.Add(context.Background(), 0, ofPolicy(p.Name))
	}
	inOrder(l.rules)
	for _, class := range append(routes.Classes(), Bytes, FileBytes, Failed) {
		for _, keyed := range []bool{false, true} {
			of := planOf{class, keyed}
			l.plans[of] = planFor(l.rules, of)
		}
	}
	l.wrongKeys = wrongKeyRates(store, l.rules, now)
	return l
}

// KeepLockouts bounds the memory of the addresses that are locked out, in bytes. It is called before the first request.
func (l *Limiter) KeepLockouts(bytes int64) { l.lockouts.most = int(max(bytes/lockoutBytes, 1)) }

// planFor makes the plan for one class of requests.
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

// Admit counts a request, and sets the rate limit headers of its answer. If the request is above a limit, it
// returns a fault of kind TooMany. If the store is down and the fallback refuses everything, it returns a fault
// of kind Unavailable.
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
	if len(v.States) == 0 { // the store counts nothing at the moment
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

// fill makes the buckets for a request of a client, according to the rules of a plan. The argument `body` is the
// size of the request's body.
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

// Quota is what a client has left of one rate, as GET /me shows it.
type Quota struct {
	Policy string          `json:"policy"`
	By     By              `json:"by"`
	Costs  map[Class]int64 `json:"costs"`
	Window int64           `json:"window"` // in seconds
	Limit  int64           `json:"limit"`
	Left   int64           `json:"remaining"`
	Reset  int64           `json:"reset"` // seconds until more is left
}

// Quotas returns what a client with an API key has left, and sets the rate limit headers of the answer. It
// counts nothing.
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

func (l *Limiter) countRefusal(ctx context.Context, policy string) {
	l.refused.Add(ctx, 1, ofPolicy(policy))
}

func ofPolicy(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("policy", name))
}

// measure adds the metrics of the store to a meter, until the returned function is called.
func (s *Borrower) measure(meter metric.Meter) (unregister func()) {
	observed := telemetry.Observe(meter)
	down := observed.Gauge("registry.limits.store.away", "", "1 while the limits' Redis does not answer.")
	outages := observed.Counter("registry.limits.store.losses", "{loss}", "Times that the limits' Redis went down.")
	unaided := observed.Counter("registry.limits.store.alone", "{request}",
		"Requests decided without the limits' Redis because it was down.")
	trips := observed.Counter("registry.limits.store.trips", "{call}", "Round trips to the limits' Redis.")
	own := observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(outages, s.outages.Load())
		o.ObserveInt64(unaided, s.unaided.Load())
		o.ObserveInt64(trips, s.trips.Load())
		o.ObserveInt64(down, telemetry.Flag(s.down.Load()))
	})
	pools := telemetry.MeasurePools(meter, semconv.DBSystemNameRedis, s.redis.pools)
	return func() { own(); pools() }
}
