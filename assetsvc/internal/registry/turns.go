package registry

import (
	"context"
	"hash/maphash"
	"sync/atomic"
)

// turns lets changes of one asset take turns within the process. The store
// would let only one of them through at a time anyway, and have the others
// decide anew, each time against all the rest. Assets share turns with a few
// others, so that the memory for them is bounded. So a change asks no other
// service while it holds a turn. Creations that may be repeated have turns of
// their own.
type turns struct {
	seed  maphash.Seed
	turns [256]turn
}

// turn is one that some assets share.
type turn struct {
	held  chan struct{} // holds one while somebody has it
	ended atomic.Int64  // how many have had it
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.turns {
		t.turns[i].held = make(chan struct{}, 1)
	}
	return t
}

// of returns an asset's turn.
func (t *turns) of(id string) *turn {
	return &t.turns[maphash.String(t.seed, id)%uint64(len(t.turns))]
}

// take waits for the turn and returns what ends it, or ctx's error.
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
