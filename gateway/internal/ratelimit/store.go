package ratelimit

import (
	"context"
	"net/netip"
	"time"

	"github.com/ulule/limiter/v3"
)

// Store counts what clients use. All methods are safe for concurrent use.
type Store interface {
	// Take takes the cost of every bucket from every rate of that bucket. If any
	// rate has too little left, Take takes nothing, and the verdict names that rate.
	// Take appends the state of every rate, in the order of the buckets, to states.
	// It returns an error if it cannot tell what is left; ErrStoreDown if the
	// fallback refuses everything. A verdict without states means that nothing is
	// counted at the moment.
	Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error)

	// Peek appends the state of every rate to states, and takes nothing.
	Peek(ctx context.Context, buckets []Bucket, states []State) ([]State, error)
}

// Key names one client under one policy. Requests with the same key count together.
type Key struct {
	Policy string
	Addr   netip.Addr // of a network; invalid if Name is set
	Name   string
}

// String returns the key as the Redis store writes it.
func (k Key) String() string {
	if k.Addr.IsValid() {
		return k.Policy + ":" + k.Addr.String()
	}
	return k.Policy + ":" + k.Name
}

// Bucket is what a request takes: a cost from each rate of a key. Every limit
// must be at least the cost.
type Bucket struct {
	Key   Key
	Cost  int64
	Rates []limiter.Rate
}

// State tells what is left of one rate.
type State struct {
	Rate limiter.Rate
	Left int64
	Next time.Duration // until more is left; 0 if nothing is used
}

// Verdict tells whether a request may pass.
type Verdict struct {
	States  []State
	Wait    time.Duration // until the request would pass; 0: it passes
	Refused int           // index in States of the rate that has the longest wait
}
