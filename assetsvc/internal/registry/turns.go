package registry

import (
	"context"
	"hash/maphash"
	"sync/atomic"
)

// turns are locks of assets within the process. Without them, the store would accept one of several simultaneous
// changes of an asset, and all others would have to decide again, round after round. To bound the memory, several
// assets share a lock, so the holder of a lock must not wait for another service.
//
// Repeatable creations have their own turns, whose holder waits for authsvc to make the tokens. Only other
// creations wait for these turns, and they need the same answer.
type turns struct {
	seed  maphash.Seed
	turns [256]turn
}

// turn is a lock that some assets share. Waiting for it ends early if the context of the caller ends.
type turn struct {
	held  chan struct{} // has one element while the lock is held
	ended atomic.Int64  // how many holders have ended their turn
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.turns {
		t.turns[i].held = make(chan struct{}, 1)
	}
	return t
}

// The method `of` returns the turn of an asset.
func (t *turns) of(id string) *turn {
	return &t.turns[maphash.String(t.seed, id)%uint64(len(t.turns))]
}

// take waits for the turn. It returns a function that ends the turn, or the error of ctx.
func (t *turn) take(ctx context.Context) (end func(), err error) {
	select {
	case t.held <- struct{}{}:
		return func() {
			t.ended.Add(1)
			<-t.held
		}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
