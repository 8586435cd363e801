package ratelimit

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/clientaddr"
)

// Store counts what clients use. All methods are safe for concurrent use.
type Store interface {
	// Take takes the cost of each bucket from every rate of this bucket. If any rate has too little left, Take takes
	// nothing, and the verdict names that rate. Take appends the state of every rate to states, in the order of the
	// buckets. It may replace the key of a bucket by the key of a prefix. If Take cannot learn how much is left, it
	// returns an error. The error is ErrStoreDown if the fallback refuses everything. A verdict without states means
	// that the store is down and the fallback admits everything.
	Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error)

	// Charge takes the cost of each bucket from every rate of this bucket, even if too little is left.
	Charge(buckets []Bucket)

	// Peek appends the state of every rate to states, and takes nothing.
	Peek(ctx context.Context, buckets []Bucket, states []State) ([]State, error)
}

// Key names one client under one policy. Requests with the same key count together.
type Key struct {
	Policy string
	Addr   netip.Addr // address of a network; invalid if Name is set
	Bits   uint8      // length of the prefix of Addr that counts together; 0: Addr is one client
	Name   string
}

const widest = 255 // all addresses that a full table does not keep

// wider returns the key of the prefix of an address, or of all addresses for the key of a prefix.
func (k Key) wider() Key {
	if prefix := clientaddr.Prefix(k.Addr); prefix.IsValid() && k.Bits == 0 {
		k.Addr, k.Bits = prefix.Addr(), uint8(prefix.Bits())
		return k
	}
	k.Addr, k.Bits = netip.IPv6Unspecified(), widest
	return k
}

// String returns the key in the form that the Redis store uses.
func (k Key) String() string {
	switch {
	case k.Bits > 0:
		return k.Policy + ":" + k.Addr.String() + "/" + strconv.Itoa(int(k.Bits))
	case k.Addr.IsValid():
		return k.Policy + ":" + k.Addr.String()
	}
	return k.Policy + ":" + k.Name
}

// Bucket says what a request takes from a key: the same cost from each rate. Take needs limits that are not lower than
// the cost.
type Bucket struct {
	Key   Key
	Cost  int64 // at least 1 for Take
	Rates []limiter.Rate
}

// State says what is left of one rate.
type State struct {
	Rate limiter.Rate
	Left int64
	Next time.Duration // time until more is left; 0 if nothing is used
}

// Verdict says whether a request is admitted.
type Verdict struct {
	States  []State
	Wait    time.Duration // time until the request would be admitted; 0: it is admitted now
	Refused int           // index in States of the rate with the longest wait
}
