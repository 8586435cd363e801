package httpapi

import (
	"math"
	"time"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
)

// One key may use a quarter of the room for bodies, and all keys of a broker together may use half.
const (
	keyPart    = 4 // 1/4
	brokerPart = 2 // 1/2
)

// room limits the request bodies that are being received. Receiving lasts as long as the client takes to send.
// Each caller may only use a part of the memory for bodies, and of the number of requests. So the unfinished
// bodies of one caller leave room for other callers.
type room struct {
	memory *memory.Budget
	shares []share
}

// share is the part of the room that each caller of one kind may use.
type share struct {
	of       func(identity.Identity) string
	bytes    *concurrency.Shares
	requests *concurrency.Shares
}

// newRoom returns a room that takes its memory from budget. It is for bodies of up to maxBody bytes, and for
// the given number of bodies at once. A single body always fits into a share.
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
			bytes:    concurrency.NewShares(bytes, math.MaxInt), // all callers together are limited only by the memory
			requests: concurrency.NewShares(max(requests/kind.part, 1), requests),
		})
	}
	return r
}

// hold reserves room for a caller's body until the function `release` is called. If the caller already uses its
// part, it returns a fault of kind TooMany; if there is no room, a fault of kind Unavailable.
func (r *room) hold(of identity.Identity, bytes int64) (release func(), err error) {
	var held held
	for _, s := range r.shares {
		name := s.of(of)
		for _, part := range []struct {
			shares *concurrency.Shares
			amount int
		}{{s.requests, 1}, {s.bytes, int(bytes)}} {
			if refusal := part.shares.Take(name, part.amount); refusal != concurrency.Admitted {
				held.release()
				if refusal == concurrency.AllUsed {
					return nil, noRoom()
				}
				return nil, tooManyBodies()
			}
			held.add(func() { part.shares.Return(name, part.amount) })
		}
	}
	if !r.memory.Hold(bytes) {
		held.release()
		return nil, noRoom()
	}
	held.add(func() { r.memory.Release(bytes) })
	return held.release, nil
}

func noRoom() error {
	return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many large requests now; repeat this one.")
}

func tooManyBodies() error {
	f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
		"You send too many bodies at once; finish one first.")
	f.RetryAfter = time.Second
	return f
}
