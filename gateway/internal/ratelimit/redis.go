package ratelimit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/ulule/limiter/v3"

	"asset-registry/shared/redisurl"
	"asset-registry/shared/telemetry"
)

// How long Redis may take. The client's own defaults are many times these.
const (
	dialTimeout = 100 * time.Millisecond
	callTimeout = 100 * time.Millisecond
)

//go:embed take.lua
var takeText string

// Redis is a Store that any number of gateways share. Every call of it is one
// round trip, however many buckets and rates it is about. All of a key is one
// string under one Redis key, which one script works on: a cluster has it on
// one node.
type Redis struct {
	library
	client redis.UniversalClient
	script *redis.Script
	within time.Duration    // a round trip
	now    func() time.Time // nil: Redis's own clock, which is one for all
}

// OpenRedis returns a store on the server at a URL
// ("redis://user:password@host:port/db", rediss for TLS; with ?addr=host:port
// for each further node of a cluster; or that of its sentinels, package
// redisurl). It does not wait for the server.
func OpenRedis(url string) (*Redis, error) { return openWithin(url, callTimeout) }

func openWithin(url string, within time.Duration) (*Redis, error) {
	client, err := newClient(url, within)
	if err != nil {
		return nil, err
	}
	logging.Disable() // one logger for all of the process, and no JSON: what it would say, our errors say
	r := &Redis{client: client, within: within, script: redis.NewScript(takeText)}
	r.library.store = r
	return r, nil
}

func newClient(url string, within time.Duration) (redis.UniversalClient, error) {
	malformed := errors.New("the address of the limits' Redis server is malformed") // it may hold a password
	if redisurl.IsSentinel(url) {
		translated, err := redisurl.Failover(url)
		if err != nil {
			return nil, err
		}
		o, err := redis.ParseFailoverURL(translated)
		if err != nil {
			return nil, malformed
		}
		if o.TLSConfig != nil {
			o.TLSConfig.ServerName = "" // each server has its own
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, within, within, within
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
		return redis.NewFailoverClient(o), nil
	}
	if strings.Contains(url, "addr=") {
		o, err := redis.ParseClusterURL(url)
		if err != nil {
			return nil, malformed
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, within, within, within
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, malformed
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, within, within, within
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // plain servers have none
	return redis.NewClient(o), nil
}

// CheckURL tells whether a URL is one that OpenRedis takes.
func CheckURL(url string) error {
	client, err := newClient(url, callTimeout)
	if err != nil {
		return err
	}
	return client.Close()
}

// ask is one run of the script: a question and its answer.
type ask struct {
	key         string
	rates       []limiter.Rate
	least, most int64
	life        time.Duration
	kept        int64         // gateways that each keep a part of the limits to themselves
	settle      loan          // what has become of it is told
	used        int64         // tokens of it
	unlent      int64         // tokens that were used without any
	ago         time.Duration // since the last of these was used

	got    loan
	states []State
	short  shortage // of least, where it was not lent
}

// loan is what Redis has lent.
type loan struct {
	tokens     int64
	generation int64   // of the key's record, which Redis may lose
	slots      []int64 // where the record has it, by rate
}

// redisKey has the client as hash tag, and the windows: those of other lengths
// are counted apart.
func redisKey(b *Bucket) string {
	var key strings.Builder
	key.WriteString("registry:limits:{" + b.Key.String() + "}")
	for i := range b.Rates {
		key.WriteString(":" + b.Rates[i].Period.String())
	}
	return key.String()
}

func (r *Redis) args(a *ask) []any {
	now := ""
	if r.now != nil {
		now = fmt.Sprint(r.now().UnixMicro())
	}
	args := append(make([]any, 0, 9+3*len(a.rates)),
		now, a.least, a.most, a.settle.generation, a.settle.tokens, a.used, a.unlent, a.ago.Microseconds(), a.life.Microseconds())
	for i := range a.rates {
		slot := int64(0)
		if a.settle.slots != nil {
			slot = a.settle.slots[i]
		}
		limit := a.rates[i].Limit
		args = append(args, limit-a.kept*keptOf(limit, a.kept), a.rates[i].Period.Microseconds(), slot)
	}
	return args
}

// run asks all in one round trip. An error leaves open what was done.
func (r *Redis) run(ctx context.Context, asks []*ask) error {
	ctx, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	pipe := r.client.Pipeline()
	answers := make([]*redis.Cmd, len(asks))
	for i, a := range asks {
		answers[i] = pipe.EvalSha(ctx, r.script.Hash(), []string{a.key}, r.args(a)...)
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	var again []int
	for i, answer := range answers {
		if redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") { // nothing was done
			answers[i] = pipe.Eval(ctx, takeText, []string{asks[i].key}, r.args(asks[i])...)
			again = append(again, i)
		}
	}
	if again != nil {
		_, _ = pipe.Exec(ctx)
	}
	for i, answer := range answers {
		values, err := answer.Int64Slice()
		if err != nil {
			return fmt.Errorf("ask Redis for tokens: %w", err)
		}
		if err := asks[i].read(values); err != nil {
			return err
		}
	}
	return nil
}

func (a *ask) read(values []int64) error {
	strange := func() error {
		return fmt.Errorf("ask Redis for tokens: its answer for %s is of no form that is known", a.key)
	}
	if len(values) < 2 {
		return strange()
	}
	a.got = loan{tokens: values[0], generation: values[1], slots: make([]int64, len(a.rates))}
	values = values[2:]
	refused := a.got.tokens < a.least
	if refused {
		a.short = make(shortage, len(a.rates))
	}
	for i, rate := range a.rates {
		if len(values) < 4 || values[3] < 0 || int64(len(values)-4)/2 < values[3] {
			return strange()
		}
		a.states = append(a.states, State{Rate: rate, Left: max(0, values[0]), Next: time.Duration(values[1]) * time.Microsecond})
		a.got.slots[i] = values[2]
		if refused {
			a.short[i] = lack{left: values[0], period: rate.Period, uses: values[4 : 4+2*values[3]]}
		}
		values = values[4+2*values[3]:]
	}
	if len(values) > 0 {
		return strange()
	}
	return nil
}

func asksFor(buckets []Bucket) []*ask {
	asks := make([]*ask, len(buckets))
	for i := range buckets {
		b := &buckets[i]
		asks[i] = &ask{key: redisKey(b), rates: b.Rates, least: b.Cost, most: b.Cost}
	}
	return asks
}

// Take implements Store.
func (r *Redis) Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error) {
	asks := asksFor(buckets)
	if err := r.run(ctx, asks); err != nil {
		return Verdict{}, err
	}
	v := Verdict{States: states}
	var back []*ask
	for _, a := range asks {
		if wait, rate := a.short.wait(0, a.least); wait > v.Wait {
			v.Wait, v.Refused = wait, len(v.States)+rate
		}
		if a.got.tokens > 0 {
			back = append(back, &ask{key: a.key, rates: a.rates, settle: a.got})
		}
		v.States = append(v.States, a.states...)
	}
	if v.Wait > 0 && back != nil {
		return v, r.run(ctx, back)
	}
	return v, nil
}

// Look implements Store.
func (r *Redis) Look(ctx context.Context, buckets []Bucket, states []State) ([]State, error) {
	asks := asksFor(buckets)
	for _, a := range asks {
		a.least, a.most = 0, 0
	}
	if err := r.run(ctx, asks); err != nil {
		return nil, err
	}
	for _, a := range asks {
		states = append(states, a.states...)
	}
	return states, nil
}

// Reset implements limiter.Store.
func (r *Redis) Reset(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	if err := r.client.Del(ctx, redisKey(&oneRate(key, 0, rate)[0])).Err(); err != nil {
		return limiter.Context{}, fmt.Errorf("reset limit: %w", err)
	}
	return r.Peek(ctx, key, rate)
}

// pools are the connections, to all nodes of a cluster together.
func (r *Redis) pools() []telemetry.Pool {
	s := r.client.PoolStats()
	p := telemetry.Pool{
		Name: "limits", Idle: int64(s.IdleConns), Used: int64(s.TotalConns) - int64(s.IdleConns),
		Waiting: int64(s.PendingRequests), Timeouts: int64(s.Timeouts),
	}
	if single, ok := r.client.(*redis.Client); ok {
		p.Max = int64(single.Options().PoolSize)
	}
	return []telemetry.Pool{p}
}

// Close closes the connections.
func (r *Redis) Close() error { return r.client.Close() }
