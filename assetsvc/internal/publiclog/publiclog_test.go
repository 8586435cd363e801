package publiclog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

func key(t testing.TB) translog.Key { return keyOf(t, "registry.example/log", 7) }

// keyOf returns a key for a log. Its seed consists of one repeated byte.
func keyOf(t testing.TB, origin string, seed byte) translog.Key {
	t.Helper()
	return expect.Get(translog.NewKey(translog.ForLog, origin, slices.Repeat([]byte{seed}, 32)))(t)
}

// simulate lets four processes extend and sign one log while the record grows. Calls fail, and processes are
// killed at any moment and replaced by new ones.
func simulate(t *testing.T, seed uint64, leaveOut guard) *world {
	w := newWorld(seed)
	w.leaveOut = leaveOut
	o := publiclog.Options{
		Keys: []translog.Key{key(t)}, Every: 10 * time.Millisecond, Signed: 30 * time.Millisecond, Cosign: w.cosign,
	}
	var running sync.WaitGroup
	start := func() context.CancelFunc {
		ctx, stop := context.WithCancel(t.Context())
		running.Go(func() { publiclog.NewWriter(w, w, o).Run(ctx, func(time.Time, error) {}) })
		return stop
	}
	stops := []context.CancelFunc{start(), start(), start(), start()}
	for position := int64(1); position <= 1800; {
		// The changes of a batch become visible in any order. After that, the horizon moves past them.
		w.mu.Lock()
		last := position + w.random.Int64N(8)
		w.mu.Unlock()
		order := []int64{}
		for ; position <= last; position++ {
			order = append(order, position)
		}
		w.mu.Lock()
		w.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		kill := w.random.IntN(40) == 0
		w.mu.Unlock()
		for _, p := range order {
			time.Sleep(5 * time.Millisecond)
			w.mu.Lock()
			w.changes = append(w.changes, change(t, p))
			w.mu.Unlock()
		}
		w.mu.Lock()
		w.horizon = last
		w.mu.Unlock()
		if kill {
			i := int(position) % len(stops)
			stops[i]()
			stops[i] = start()
		}
	}
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	time.Sleep(5 * time.Second)
	for _, stop := range stops {
		stop()
	}
	running.Wait()
	w.check(t)
	return w
}

// check compares the log with the record. Each public change below the horizon must have one leaf, in the order of
// positions. The tree of every checkpoint that was ever signed must be the beginning of the final log.
func (w *world) check(t *testing.T) {
	t.Helper()
	var want [][]byte
	roots := map[int64]string{0: translog.Tree{}.Root().String()}
	var tree translog.Tree
	for position := int64(1); position <= w.horizon; position++ {
		leaf, _, public, err := change(t, position).Leaf()
		expect.OK(t, err)
		if public {
			want = append(want, leaf.Encode())
			tree, _, err = tree.Append(want[len(want)-1:])
			expect.OK(t, err)
			roots[tree.Size()] = tree.Root().String()
		}
	}
	if w.head.Tree.Size() != tree.Size() || w.head.Tree.Root() != tree.Root() {
		w.fail("got a log of %d leaves, want the %d public changes", w.head.Tree.Size(), tree.Size())
	}
	for _, c := range w.signed {
		if roots[c.Size] != c.Root.String() {
			w.fail("a checkpoint of %d leaves has the root %s, want %s", c.Size, c.Root, roots[c.Size])
		}
	}
	if w.head.Checkpoint == nil || parse(w.head.Checkpoint).Size != tree.Size() {
		w.fail("the newest checkpoint does not cover the %d leaves", tree.Size())
	}
}

// Promises: one-tree
func TestTheLogIsAFunctionOfTheRecord(t *testing.T) {
	checkpoints := 0
	for seed := range uint64(10) {
		var w *world
		synctest.Test(t, func(t *testing.T) { w = simulate(t, seed, 0) })
		if len(w.failed) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.failed[:min(5, len(w.failed))], "; "))
		}
		checkpoints += len(w.signed)
	}
	t.Logf("%d checkpoints were signed", checkpoints)
	expect.ErrorIf(t, checkpoints < 100, "got %d checkpoints, want at least 100", checkpoints)
}

func TestTheLogNeedsEachGuard(t *testing.T) {
	for _, c := range []struct {
		name     string
		leaveOut guard
	}{
		{"a head replaces only the one that it was made from", swap},
		{"the log ends at the horizon of the record", horizon},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(20) {
				var w *world
				synctest.Test(t, func(t *testing.T) { w = simulate(t, seed, c.leaveOut) })
				if len(w.failed) > 0 {
					t.Logf("seed %d: %s", seed, w.failed[0])
					return
				}
			}
			t.Error("got no violation in 20 simulations, want one")
		})
	}
}

// TestEachChangeIsProved makes a log of 1,500 changes, and asks for the proofs of many. Each public change must
// have a valid proof.
func TestEachChangeIsProved(t *testing.T) {
	w := newWorld(1)
	w.calm = true
	synctest.Test(t, func(t *testing.T) {
		r := publiclog.NewReader(w)
		expect.ErrOf(t, publiclog.ErrUnsigned, "an empty log")(r.Checkpoint(t.Context()))
		writer := publiclog.NewWriter(w, w, publiclog.Options{Keys: []translog.Key{key(t)}})
		for position := int64(1); position <= 1500; position++ {
			w.changes = append(w.changes, change(t, position))
		}
		w.horizon = 1500
		for more := true; more; {
			var err error
			more, _, err = writer.Extend(t.Context())
			expect.OK(t, err)
		}
		if won, err := writer.Sign(t.Context()); err != nil || !won {
			t.Fatalf("sign: got %v, %v; want true", won, err)
		}
		policy := expect.Get(translog.LogPolicy(key(t).Public()))(t)
		for position := int64(0); position <= 1501; position += 7 {
			proof, leaf, err := r.Prove(t.Context(), position)
			if position%4 == 0 { // the change is not public
				expect.Err(t, err, registry.ErrNoLeaf, "position %d", position)
				continue
			}
			expect.Must(t, err, "position %d", position)
			if l, err := translog.ParseLeaf(leaf); err != nil || l.Position != position {
				t.Errorf("position %d: got leaf %s, %v", position, leaf, err)
			}
			if _, err := proof.Verify(policy, leaf); err != nil {
				t.Errorf("position %d: got %v, want a proof that verifies", position, err)
			}
		}
		for _, position := range []int64{1500, 1501, 5000} { // 1500 is not public, and no later position has a leaf
			if _, _, err := r.Prove(t.Context(), position); !errors.Is(err, registry.ErrNotLogged) {
				t.Errorf("position %d: got %v, want %v", position, err, registry.ErrNotLogged)
			}
		}
	})
}

// TestKeysOfTheLog changes the keys of a writer, and checks which keys sign the next checkpoint.
func TestKeysOfTheLog(t *testing.T) {
	old, added := key(t), keyOf(t, "registry.example/log", 8)
	other := keyOf(t, "registry.example/log/2", 9)
	for _, c := range []struct {
		name string
		keys []translog.Key // keys of the writer after the first checkpoint
		want []translog.Key // keys that must have signed the newest checkpoint
	}{
		{"the same key signs a tree once", []translog.Key{old}, []translog.Key{old}},
		{"an added key signs beside the old one", []translog.Key{added, old}, []translog.Key{added, old}},
		{"a key that is removed has signed the tree already", []translog.Key{added}, []translog.Key{added}},
		{"another origin is another log", []translog.Key{other}, []translog.Key{other}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(1)
			w.calm, w.changes, w.horizon = true, []registry.Revision{change(t, 1), change(t, 2)}, 2
			synctest.Test(t, func(t *testing.T) {
				for _, keys := range [][]translog.Key{{old}, c.keys, c.keys} {
					writer := publiclog.NewWriter(w, w, publiclog.Options{Keys: keys})
					if _, _, err := writer.Extend(t.Context()); err != nil {
						t.Fatal(err)
					}
					if won, err := writer.Sign(t.Context()); err != nil || !won {
						t.Fatalf("sign: got %v, %v; want true", won, err)
					}
				}
				for _, k := range c.want {
					policy := expect.Get(translog.LogPolicy(k.Public()))(t)
					if signed, err := policy.Open(w.head.Checkpoint); err != nil || signed.Size != 2 {
						t.Errorf("got %d leaves under the key of %s, %v; want 2", signed.Size, k.Public(), err)
					}
				}
				if c.keys[0].Secret() == old.Secret() && len(c.keys) == 1 && w.head.Version != 2 {
					t.Errorf("got %d changes of the head, want 2", w.head.Version)
				}
			})
		})
	}
}
