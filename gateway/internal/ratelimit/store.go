package ratelimit

import (
	"context"
	"net/netip"
	"time"

	"github.com/ulule/limiter/v3"
)

// Store counts what is used. Beside what the library asks of a store, one rate
// of one key at a time, it takes from several buckets in one go. All methods
// are safe for concurrent use; none takes anything from what has too little.
type Store interface {
	limiter.Store

	// Take takes the cost of every bucket from all rates of it, or, when one of
	// them has too little, nothing at all; the verdict tells which. The states of
	// all rates, in the order of buckets, are appended to states. It fails when
	// it cannot tell.
	Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error)

	// Look appends the states of all rates to states, and takes nothing.
	Look(ctx context.Context, buckets []Bucket, states []State) ([]State, error)
}

// Key names what is counted together: one client under one policy.
type Key struct {
	Policy string
	Addr   netip.Addr // of a network; invalid if the client is named
	Name   string
}

// String is the key as a store on the network has it.
func (k Key) String() string {
	if k.Addr.IsValid() {
		return k.Policy + ":" + k.Addr.String()
	}
	return k.Policy + ":" + k.Name
}

// Bucket is what a request takes from: its cost from each rate of a key. The
// limits must be at least the cost.
type Bucket struct {
	Key   Key
	Cost  int64
	Rates []limiter.Rate
}

// State is what is left of one rate.
type State struct {
	Rate limiter.Rate
	Left int64
	Next time.Duration // until more is left; 0 when nothing is used
}

// Verdict tells whether a request may pass.
type Verdict struct {
	States  []State
	Wait    time.Duration // until the request would pass; 0: it may
	Refused int           // the state that lets it wait
}

// library makes the methods of limiter.Store from those of a Store: a key of
// one rate is a bucket of its own.
type library struct{ store Store }

func (l library) Get(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	return l.Increment(ctx, key, 1, rate)
}

func (l library) Peek(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	states, err := l.store.Look(ctx, oneRate(key, 0, rate), nil)
	if err != nil {
		return limiter.Context{}, err
	}
	return states[0].context(states[0].Left == 0), nil
}

func (l library) Increment(ctx context.Context, key string, count int64, rate limiter.Rate) (limiter.Context, error) {
	verdict, err := l.store.Take(ctx, oneRate(key, count, rate), nil)
	if err != nil {
		return limiter.Context{}, err
	}
	return verdict.States[0].context(verdict.Wait > 0), nil
}

// libraryKey keeps apart what is counted in windows of different lengths.
func libraryKey(key string, rate limiter.Rate) Key {
	return Key{Policy: rate.Period.String(), Name: key}
}

func oneRate(key string, cost int64, rate limiter.Rate) []Bucket {
	return []Bucket{{Key: libraryKey(key, rate), Cost: cost, Rates: []limiter.Rate{rate}}}
}

func (s State) context(reached bool) limiter.Context {
	return limiter.Context{Limit: s.Rate.Limit, Remaining: s.Left, Reset: time.Now().Add(s.Next).Unix(), Reached: reached}
}
