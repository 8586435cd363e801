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
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// guard is a part of the protocol. A test can switch it off in a world, to show that the protocol needs it.
type guard int

const (
	_       guard = iota
	swap          // without this guard, ExtendLog replaces the head without comparing its version
	horizon       // without this guard, Changes also returns changes above the horizon
)

// world is a record and a store in memory. Calls take random times, may fail before or after their effect, and
// return an error when their context ends. It is safe for concurrent use.
type world struct {
	leaveOut guard
	calm     bool          // calls do not fail at random
	takes    time.Duration // time of each call; 0: random
	most     int           // maximum number of changes in a page

	mu      sync.Mutex
	random  *rand.Rand
	changes []registry.Revision // stored changes, in any order
	horizon int64
	head    publiclog.Head
	parts   map[translog.Tile][]byte
	signed  []translog.Checkpoint // all checkpoints that were signed, even if they were not published
	failed  []string
	calls   int

	down    error // error with which calls fail, after some calls that succeed; nil: they fail at random
	works   int   // how many calls succeed before calls fail with the error in the field `down`
	once    bool  // only one call fails with the error in the field `down`
	refused bool  // a call has failed with the error in the field `down`
}

func newWorld(seed uint64) *world {
	return &world{most: 100, random: rand.New(rand.NewPCG(seed, 3)), parts: map[translog.Tile][]byte{}}
}

var errLost = errors.New("no answer")

// call simulates one call of the store, and the function `do` is the effect of the call. It waits before and after
// the effect, and may fail before or after it.
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
	for _, part := range parts { // one after the other, like a store that keeps parts in separate documents
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

// cosign records a checkpoint that a writer has signed. It adds no cosignatures.
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

// change returns a change at a position. Changes at every fourth position are not public.
func change(t *testing.T, position int64) registry.Revision {
	t.Helper()
	r := registry.Revision{ID: fmt.Sprintf("%032x", position), Revision: 1, Position: position}
	if position%4 == 0 {
		return r
	}
	kept := expect.Get(json.Marshal(map[string]any{"by": map[string]any{}, "size": 0,
		"leaf": map[string]any{"kind": translog.Withdraw}}))(t)
	r.Change = kept
	return r
}
