package httpapi

import (
	"math"
	"time"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
)

// A key may have this part of the room for bodies, and a broker with all its keys that part.
const (
	keyPart    = 4 // 1/4
	brokerPart = 2 // 1/2
)

// room bounds the request bodies under way, which last as long as their clients take to send
// them. Each caller has a part of the memory for bodies, and of the requests under way. So the
// unfinished bodies of one caller leave room for others.
type room struct {
	memory *memory.Budget
	shares []share
}

// share is the part of the room that one kind of callers may take.
type share struct {
	of       func(identity.Identity) string
	bytes    *concurrency.Shares
	requests *concurrency.Shares
}

// newRoom returns the room in a memory, for bodies of up to maxBody bytes, among so many
// requests under way. A single body always fits a share.
func newRoom(budget *memory.Budget, maxBody int64, requests int) *room {
	r := &room{memory: budget}
	for _, kind := range []struct {
		part int
		of   func(identity.Identity) string
	}{
		{keyPart, func(i identity.Identity) string { return i.KeyID }},
		{brokerPart, func(i identity.Identity) string { return i.Broker }},
	} {
		bytes := max(int(budget.Size())/kind.part, int(maxBody))
		r.shares = append(r.shares, share{
			of:       kind.of,
			bytes:    concurrency.NewShares(bytes, math.MaxInt), // memory bounds all together
			requests: concurrency.NewShares(max(requests/kind.part, 1), math.MaxInt),
		})
	}
	return r
}

// hold takes room for a body of a caller until release. It returns a fault of kind TooMany if
// the caller has its part, and one of kind Unavailable if there is no room.
func (r *room) hold(of identity.Identity, bytes int64) (release func(), err error) {
	var held held
	for _, s := range r.shares {
		name := s.of(of)
		for _, part := range []struct {
			shares *concurrency.Shares
			amount int
		}{{s.requests, 1}, {s.bytes, int(bytes)}} {
			if part.shares.Take(name, part.amount) != concurrency.Admitted {
				held.release()
				return nil, tooManyBodies()
			}
			held.add(func() { part.shares.Return(name, part.amount) })
		}
	}
	if !r.memory.Hold(bytes) {
		held.release()
		return nil, fault.New(fault.Unavailable, fault.URL, "registry",
			"There are too many large requests now; repeat this one.")
	}
	held.add(func() { r.memory.Release(bytes) })
	return held.release, nil
}

func tooManyBodies() error {
	f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
		"You send too many bodies at once; finish one first.")
	f.RetryAfter = time.Second
	return f
}
