package registry

import (
	"context"
	"hash/maphash"
)

// turns lets changes of one asset take turns within the process. The store
// would let only one of them through at a time anyway, and have the others
// decide anew, each time against all the rest. Assets share turns with a few
// others, so that the memory for them is bounded.
type turns struct {
	seed maphash.Seed
	of   [256]chan struct{}
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.of {
		t.of[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits for an asset's turn and returns what ends it, or ctx's error.
func (t *turns) take(ctx context.Context, id string) (end func(), err error) {
	turn := t.of[maphash.String(t.seed, id)%uint64(len(t.of))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
