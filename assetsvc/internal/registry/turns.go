package registry

import (
	"context"
	"hash/maphash"
	"sync/atomic"
)

// turns are locks of assets within the process. Without them, the store would
// accept one of several simultaneous changes of an asset and make the others
// decide again, in every round. Several assets share a lock, which bounds the
// memory. So the holder must not wait for another service. Repeatable creations
// have turns of their own. Their holder waits for authsvc, which makes the tokens; whoever waits for
// such a turn is a creation too, and needs the same answer.
type turns struct {
	seed  maphash.Seed
	turns [256]turn
}

// turn is a lock that some assets share. Waiting for it ends with a context.
type turn struct {
	held  chan struct{} // has an element while the lock is held
	ended atomic.Int64  // number of past holders
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.turns {
		t.turns[i].held = make(chan struct{}, 1)
	}
	return t
}

// of returns the turn of an asset.
func (t *turns) of(id string) *turn {
	return &t.turns[maphash.String(t.seed, id)%uint64(len(t.turns))]
}

// take waits for the turn. It returns the function that ends the turn, or the error
// of ctx.
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
