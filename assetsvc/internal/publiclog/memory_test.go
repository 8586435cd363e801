package publiclog_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/translog"
)

// guard is a part of the protocol that a world leaves out, to see that it is needed.
type guard int

const (
	_       guard = iota
	swap          // ExtendLog stores each head, whatever the stored one is
	horizon       // Changes shows what is above the horizon
)

// world is a record and a store in memory. Calls take random times, fail before or after
// their effect, and end with their context. It is safe for concurrent use.
type world struct {
	leaveOut guard
	calm     bool          // calls do not fail
	takes    time.Duration // of each call; 0: a random time
	most     int           // changes of a page

	mu      sync.Mutex
	random  *rand.Rand
	changes []registry.Revision // stored, in any order
	horizon int64
	head    publiclog.Head
	parts   map[translog.Tile][]byte
	signed  []translog.Checkpoint // all that were signed, published or not
	failed  []string
	calls   int

	down    error // of all calls but the first ones; nil: calls fail at random
	works   int   // the number of the first calls
	once    bool  // only the first call after these fails
	refused bool  // a call has failed because of down
}

func newWorld(seed uint64) *world {
	return &world{most: 100, random: rand.New(rand.NewPCG(seed, 3)), parts: map[translog.Tile][]byte{}}
}

var errLost = errors.New("no answer")

// call waits, does, and waits again. It may fail before or after it does.
func (w *world) call(ctx context.Context, do func()) error {
	w.mu.Lock()
	before, after := w.random.IntN(20), w.random.IntN(20)
	lost, late := w.random.IntN(30) == 0 && !w.calm, w.random.IntN(30) == 0 && !w.calm
	w.calls++
	var down error
	if w.works--; w.works < 0 {
		down, w.refused = w.down, w.refused || w.down != nil
		if w.once {
			w.down = nil
		}
	}
	w.mu.Unlock()
	if down != nil {
		return down
	}
	if w.takes > 0 {
		time.Sleep(w.takes)
		w.mu.Lock()
		defer w.mu.Unlock()
		do()
		return ctx.Err()
	}
	time.Sleep(time.Duration(before) * time.Millisecond)
	if lost || ctx.Err() != nil {
		return errLost
	}
	w.mu.Lock()
	do()
	w.mu.Unlock()
	time.Sleep(time.Duration(after) * time.Millisecond)
	if late || ctx.Err() != nil {
		return errLost
	}
	return nil
}

func (w *world) fail(format string, args ...any) {
	w.failed = append(w.failed, fmt.Sprintf(format, args...))
}

func (w *world) Changes(ctx context.Context, q registry.ChangesQuery) (page registry.ChangesPage, err error) {
	err = w.call(ctx, func() {
		page.Upto = w.horizon
		byPosition := func(a, b registry.Revision) int { return cmp.Compare(a.Position, b.Position) }
		if !slices.IsSortedFunc(w.changes, byPosition) {
			slices.SortFunc(w.changes, byPosition)
		}
		first, _ := slices.BinarySearchFunc(w.changes, registry.Revision{Position: q.After + 1}, byPosition)
		for _, c := range w.changes[first:] {
			if c.Position > w.horizon && w.leaveOut != horizon {
				return
			}
			if len(page.Changes) == min(q.Limit, w.most) {
				page.Upto, page.More = page.Changes[len(page.Changes)-1].Position, true
				return
			}
			page.Changes = append(page.Changes, c)
		}
	})
	return page, err
}

func (w *world) LogHead(ctx context.Context) (head publiclog.Head, err error) {
	err = w.call(ctx, func() { head = w.head })
	return head, err
}

func (w *world) ExtendLog(ctx context.Context, head publiclog.Head, parts []translog.Part) (stored bool, err error) {
	for _, part := range parts { // one at a time, as a store of several documents does
		if err := w.call(ctx, func() { w.addPart(part) }); err != nil {
			return false, err
		}
	}
	err = w.call(ctx, func() {
		if stored = w.head.Version == head.Version || w.leaveOut == swap; !stored {
			return
		}
		if head.Tree.Size() < w.head.Tree.Size() {
			w.fail("the tree went from %d leaves to %d", w.head.Tree.Size(), head.Tree.Size())
		}
		w.head, w.head.Version = head, head.Version+1
	})
	return stored, err
}

func (w *world) addPart(part translog.Part) {
	if old, there := w.parts[part.Tile]; there && !slices.Equal(old, part.Data) {
		w.fail("%s changed", part.Tile.Path())
	}
	w.parts[part.Tile] = slices.Clone(part.Data)
}

func (w *world) LogPart(ctx context.Context, tile translog.Tile) (data []byte, err error) {
	there := false
	if err := w.call(ctx, func() { data, there = w.parts[tile] }); err != nil {
		return nil, err
	}
	if !there {
		return nil, publiclog.ErrNoPart
	}
	return slices.Clone(data), nil
}

// cosign records a checkpoint that a writer has signed.
func (w *world) cosign(_ context.Context, _ translog.Checkpoint, checkpoint []byte) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signed = append(w.signed, parse(checkpoint))
	return checkpoint, nil
}

func parse(checkpoint []byte) translog.Checkpoint {
	c, err := translog.Unverified(checkpoint)
	if err != nil {
		panic(err)
	}
	return c
}

// change returns a change at a position. Every fourth one is not public.
func change(t *testing.T, position int64) registry.Revision {
	t.Helper()
	r := registry.Revision{ID: fmt.Sprintf("%032x", position), Revision: 1, Position: position}
	if position%4 == 0 {
		return r
	}
	kept, err := json.Marshal(map[string]any{"by": map[string]any{}, "size": 0,
		"leaf": map[string]any{"kind": translog.Withdraw}})
	if err != nil {
		t.Fatal(err)
	}
	r.Change = kept
	return r
}
