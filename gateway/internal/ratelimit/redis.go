package ratelimit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"

	"asset-registry/shared/redisclient"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
)

// callTimeout is the timeout for opening a connection to Redis, for waiting for a free connection, and for a call.
// The defaults of the client library are many times longer.
const callTimeout = 100 * time.Millisecond

//go:embed take.lua
var takeScript string

// Redis is a server that lends tokens to any number of gateways. Each call is one
// round trip, for any number of keys. All rates of a key are in one Redis string,
// so one script can change them together, also in a cluster.
type Redis struct {
	connections connections
	timeout     time.Duration    // timeout of a round trip
	now         func() time.Time // nil: the clock of Redis, which all gateways share
}

// connections are the connections to a server. The interface exists so that Redis has no types of the client
// library: otherwise each package that uses a Redis would take seconds longer to compile.
type connections interface {
	// take runs the script once for each key, with the arguments of this key, in one round trip. If the script
	// fails for one key, take returns this error.
	take(ctx context.Context, keys []string, args [][]any) (answers [][]int64, err error)
	// pool returns the number of connections; in a cluster, to all nodes together.
	pool() telemetry.Pool
	Close() error
}

// OpenRedis returns the server or the cluster at the given URL (redisclient.Open). It does not connect yet.
func OpenRedis(url string) (*Redis, error) { return openWithin(url, callTimeout) }

func openWithin(url string, timeout time.Duration) (*Redis, error) {
	client, err := redisclient.Open(url, redisclient.Timeouts{Dial: timeout, Call: timeout, Pool: timeout})
	if err != nil {
		return nil, named(err)
	}
	// A call can wait for a connection before it uses the connection. The time for the whole round trip must be longer
	// than this wait. Otherwise a shortage of connections would be reported as a server that does not answer.
	whole := 3 * timeout
	return &Redis{connections: library{client, redis.NewScript(takeScript)}, timeout: whole}, nil
}

// CheckURL returns an error if OpenRedis would refuse the URL.
func CheckURL(url string) error { return named(redisclient.Check(url)) }

// named adds the words "the limits' Redis server" to an error. It returns nil for nil.
func named(err error) error {
	if err != nil {
		err = fmt.Errorf("the limits' Redis server: %w", err)
	}
	return err
}

// scriptCall is one run of the script for one key, with its arguments and its answer.
type scriptCall struct {
	key        string
	rates      []limiter.Rate
	least      int64 // tokens to lend at least; if fewer are left, Redis lends none
	most       int64 // tokens to lend at most
	life       time.Duration
	gateways   int64         // number of gateways that reserve a share of the limit; 0: nothing is reserved
	settle     grant         // an earlier grant; the script takes back its unused tokens
	used       int64         // how many tokens of the earlier grant (the field `settle`) were used
	unreported int64         // tokens that were used without asking Redis
	idle       time.Duration // time since the last token was used

	granted  grant
	states   []State
	shortage shortage // set if Redis lent nothing, because fewer tokens than least were left
}

// grant describes tokens that Redis has lent.
type grant struct {
	tokens     int64
	generation int64   // identifies the record of the key; it changes if Redis has lost the record
	slots      []int64 // for each rate: the slot of the record in which the tokens count
}

// redisKey returns the Redis key of a bucket. The hash tag of the key names the client. The key contains the
// lengths of the windows, so new counts begin when the lengths change.
func redisKey(b *Bucket) string {
	var key strings.Builder
	key.WriteString("registry:limits:{" + b.Key.String() + "}")
	for i := range b.Rates {
		key.WriteString(":" + b.Rates[i].Period.String())
	}
	return key.String()
}

// args returns the arguments of the script (ARGV), as take.lua describes them.
func (r *Redis) args(c *scriptCall) []any {
	now := ""
	if r.now != nil {
		now = fmt.Sprint(r.now().UnixMicro())
	}
	args := append(make([]any, 0, 9+3*len(c.rates)),
		now, c.least, c.most, c.settle.generation, c.settle.tokens, c.used,
		c.unreported, c.idle.Microseconds(), c.life.Microseconds())
	for i := range c.rates {
		slot := int64(0)
		if c.settle.slots != nil {
			slot = c.settle.slots[i]
		}
		limit := c.rates[i].Limit
		args = append(args, limit-c.gateways*reserveOf(limit, c.gateways), c.rates[i].Period.Microseconds(), slot)
	}
	return args
}

// run makes all calls in one round trip. If it returns an error, any of the calls may have taken effect.
func (r *Redis) run(ctx context.Context, calls []*scriptCall) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	keys, args := make([]string, len(calls)), make([][]any, len(calls))
	for i, c := range calls {
		keys[i], args[i] = c.key, r.args(c)
	}
	answers, err := r.connections.take(ctx, keys, args)
	if err != nil {
		return fmt.Errorf("ask Redis for tokens: %w", err)
	}
	for i, answer := range answers {
		if !calls[i].read(answer) {
			return fmt.Errorf("ask Redis for tokens: its answer for %s has an unknown form", calls[i].key)
		}
	}
	return nil
}

// read reads the answer of the script, as take.lua describes it. The result `ok` is false if the answer has a
// wrong form.
func (c *scriptCall) read(values []int64) (ok bool) {
	if len(values) < 2 {
		return false
	}
	c.granted = grant{tokens: values[0], generation: values[1], slots: make([]int64, len(c.rates))}
	values = values[2:]
	refused := c.granted.tokens < c.least
	if refused {
		c.shortage = make(shortage, len(c.rates))
	}
	for i, rate := range c.rates {
		if len(values) < 4 || values[3] < 0 || int64(len(values)-4)/2 < values[3] {
			return false
		}
		next := time.Duration(values[1]) * time.Microsecond
		c.states = append(c.states, State{Rate: rate, Left: max(0, values[0]), Next: next})
		c.granted.slots[i] = values[2]
		if refused {
			c.shortage[i] = rateShortage{left: values[0], period: rate.Period, uses: values[4 : 4+2*values[3]]}
		}
		values = values[4+2*values[3]:]
	}
	return len(values) == 0
}

// callsFor returns one call for each bucket. The call takes exactly the cost of this bucket.
func callsFor(buckets []Bucket) []*scriptCall {
	calls := make([]*scriptCall, len(buckets))
	for i := range buckets {
		b := &buckets[i]
		calls[i] = &scriptCall{key: redisKey(b), rates: b.Rates, least: b.Cost, most: b.Cost}
	}
	return calls
}

// pools returns the number of connections.
func (r *Redis) pools() []telemetry.Pool { return []telemetry.Pool{r.connections.pool()} }

// Close closes the connections.
func (r *Redis) Close() error { return r.connections.Close() }

// library has the connections of the client library. It does not embed the client, whose hundreds of methods
// would take seconds to compile.
type library struct {
	client redis.UniversalClient
	script *redis.Script
}

func (l library) take(ctx context.Context, keys []string, args [][]any) ([][]int64, error) {
	pipe := l.client.Pipeline()
	commands := make([]*redis.Cmd, len(keys))
	for i, key := range keys {
		commands[i] = pipe.EvalSha(ctx, l.script.Hash(), []string{key}, args[i]...)
	}
	_, _ = pipe.Exec(ctx) // ignored, because each command has its own error
	repeat := false
	for i, command := range commands {
		if redis.HasErrorPrefix(command.Err(), "NOSCRIPT") { // the script was not loaded, so the call has had no effect
			commands[i] = pipe.Eval(ctx, takeScript, []string{keys[i]}, args[i]...)
			repeat = true
		}
	}
	if repeat {
		_, _ = pipe.Exec(ctx)
	}
	answers := make([][]int64, len(keys))
	for i, command := range commands {
		var err error
		if answers[i], err = command.Int64Slice(); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func (l library) Close() error { return l.client.Close() }

func (l library) pool() telemetry.Pool {
	s := l.client.PoolStats()
	p := telemetry.Pool{
		Name: "limits", Idle: int64(s.IdleConns), Used: int64(s.TotalConns) - int64(s.IdleConns),
		Waiting: int64(s.PendingRequests), Timeouts: int64(s.Timeouts),
	}
	if single, ok := l.client.(*redis.Client); ok {
		p.Max = int64(single.Options().PoolSize)
	}
	return p
}

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
