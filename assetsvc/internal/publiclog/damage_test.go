package publiclog_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// damages has functions that damage the first bundle of a log in different ways.
var damages = map[string]func(w *world){
	"a bundle is lost":    func(w *world) { delete(w.parts, translog.BundleOf(0, 300)) },
	"a bundle is cut off": func(w *world) { w.parts[translog.BundleOf(0, 300)] = w.parts[translog.BundleOf(0, 300)][:50] },
	"an entry is no leaf": func(w *world) { w.parts[translog.BundleOf(0, 300)][2] = 'x' },
}

func TestADamagedLogIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, damage := range damages {
			w := written(t)
			r := publiclog.NewReader(w)
			if leaf, err := r.LeafAt(t.Context(), 2); err != nil || leaf.Position != 2 || leaf.Kind != translog.Withdraw {
				t.Errorf("%s, before: got %+v, %v; want the leaf at 2", name, leaf, err)
			}
			damage(w)
			r = publiclog.NewReader(w) // the former one keeps the bundle
			if _, _, err := r.Prove(t.Context(), 2); !errors.Is(err, registry.ErrDamagedLog) {
				t.Errorf("%s: a proof: got %v, want %v", name, err, registry.ErrDamagedLog)
			}
			expect.ErrOf(t, registry.ErrDamagedLog, "%s: a leaf", name)(r.LeafAt(t.Context(), 2))
		}
		w := written(t)
		w.head.Checkpoint = []byte("x")
		r := publiclog.NewReader(w)
		_, _, proved := r.Prove(t.Context(), 2)
		_, read := r.LeafAt(t.Context(), 2)
		for _, err := range []error{proved, read} {
			expect.Err(t, err, translog.ErrCheckpoint, "a malformed checkpoint")
		}
	})
}

// TestPartsOfALogAreReadAsTheyAre reads existing parts, parts that do not exist, and a part that becomes full
// during the read. Only parts that do not exist may return an error.
func TestPartsOfALogAreReadAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := written(t)
		r := publiclog.NewReader(w)
		for name, tile := range map[string]translog.Tile{
			"a full one":                  translog.BundleOf(0, 300).Full(),
			"one that is not there yet":   translog.BundleOf(599, 600),
			"one wider than the log":      translog.BundleOf(299, 310),
			"a full one behind the log":   translog.BundleOf(299, 300).Full(),
			"a partial one of a full one": translog.BundleOf(9, 10),
		} {
			there := strings.HasPrefix(name, "a full one") && tile.Index == 0 || strings.HasPrefix(name, "a partial")
			data, err := r.Part(t.Context(), tile)
			if there && (err != nil || len(data) == 0) || !there && !errors.Is(err, publiclog.ErrNoPart) {
				t.Errorf("%s: got %d bytes, %v; want it there: %v", name, len(data), err, there)
			}
			if _, err := (publiclog.Parts{Reader: r}).ReadPart(t.Context(), tile); !there && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, as a source: got %v, want %v", name, err, fs.ErrNotExist)
			}
		}
		want := expect.Get(r.Part(t.Context(), translog.BundleOf(299, 300)))(t)
		grows := &growing{world: w, grow: func() {
			w.grown(t, 800)
			_, writer := newProcess(t, w)
			extended(t, writer)
		}}
		got, err := publiclog.NewReader(grows).Part(t.Context(), translog.BundleOf(299, 300))
		if err != nil || string(got) != string(want) {
			t.Errorf("a part that becomes full: got %d bytes, %v; want the %d of before", len(got), err, len(want))
		}
	})
}

// growing is a log that grows once, at the next read of its head.
type growing struct {
	*world
	grow func()
}

func (g *growing) LogHead(ctx context.Context) (publiclog.Head, error) {
	if grow := g.grow; grow != nil {
		g.grow = nil
		grow()
	}
	return g.world.LogHead(ctx)
}

// TestAReaderKeepsFullParts proves all leaves of a log, and counts the calls of the store. Each proof must read the
// head once, and each full part must be read once. A part that was damaged and is repaired must be read again.
func TestAReaderKeepsFullParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.most = 2000
		w.grown(t, 1400) // 1,050 leaves: four full bundles and tiles, and partial ones of three levels
		_, writer := newProcess(t, w)
		extended(t, writer)
		signed(t, writer)
		r := publiclog.NewReader(w)
		before, proofs := w.calls, 0
		for _, c := range w.changes {
			if c.Change == nil {
				continue
			}
			proofs++
			if _, _, err := r.Prove(t.Context(), c.Position); err != nil {
				t.Fatalf("position %d: %v", c.Position, err)
			}
		}
		if got := w.calls - before; proofs != 1050 || len(w.parts) != 8 || got != proofs+len(w.parts) {
			t.Errorf("got %d calls for %d proofs and %d parts, want one for each", got, proofs, len(w.parts))
		}
		bundle := translog.BundleOf(0, 1050)
		kept := w.parts[bundle]
		damages["an entry is no leaf"](w)
		r = publiclog.NewReader(w)
		if _, _, err := r.Prove(t.Context(), 2); !errors.Is(err, registry.ErrDamagedLog) {
			t.Errorf("a damaged part: got %v, want %v", err, registry.ErrDamagedLog)
		}
		kept[2] = '{'
		if _, _, err := r.Prove(t.Context(), 2); err != nil {
			t.Errorf("a repaired part: got %v, want a proof", err)
		}
	})
}

// TestAReaderKeepsFewParts reads each full part of a log with more parts than a reader keeps, in turn, many times. It
// must read at least the parts that it cannot keep from the store.
func TestAReaderKeepsFewParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts, rounds = 65, 50
		w := newWorld(1)
		w.calm, w.takes = true, 1
		for i := range int64(parts) {
			w.parts[translog.BundleOf(i*translog.TileWidth, parts*translog.TileWidth)] = []byte("a bundle")
		}
		r := publiclog.NewReader(w)
		for range rounds {
			for tile := range w.parts {
				if data, err := r.Part(t.Context(), tile); err != nil || string(data) != "a bundle" {
					t.Fatalf("%s: got %q, %v; want the bundle", tile.Path(), data, err)
				}
			}
		}
		if w.calls < parts+rounds-1 || w.calls > parts*rounds/2 {
			t.Errorf("got %d calls, want %d at first, and one or a few in each of %d rounds", w.calls, parts, rounds)
		}
	})
}

// TestAPatrolTellsWhatItFinds verifies a log while the log is damaged, while the store is down, and after a
// repair. A store that is down must not change what Damage returns.
func TestAPatrolTellsWhatItFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := expect.Get(translog.LogPolicy(key(t).Public()))(t)
		w := written(t)
		w.takes = time.Millisecond
		patrol := publiclog.NewPatrol(w, policy, time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		var said []error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			patrol.Run(ctx, func(err error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				said = append(said, err)
			})
		}()
		// finds makes the change and waits an hour. By then, the patrol must have found the expected damage, and
		// must have made the expected number of reports.
		finds := func(when string, change func(), damaged bool, reports int) {
			t.Helper()
			w.mu.Lock()
			change()
			w.mu.Unlock()
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := patrol.Damage() != ""; got != damaged || len(said) != reports {
				t.Errorf("%s: got the damage %q and the reports %v, want damage: %v, and %d reports", when, patrol.Damage(),
					said, damaged, reports)
			}
		}
		bundle := translog.BundleOf(0, 300)
		kept := w.parts[bundle]
		finds("a whole log", func() {}, false, 0)
		finds("a store that is away", func() { w.down, w.works = errDown, 0 }, false, 1)
		finds("a store that is away for parts", func() { w.works = 1 }, false, 2)
		finds("a lost part", func() {
			w.down, said = nil, nil
			delete(w.parts, bundle)
		}, true, 1)
		expect.Err(t, said[0], registry.ErrDamagedLog, "a lost part")
		finds("a store that is away from a damaged log", func() { w.down, w.works = errDown, 0 }, true, 2)
		finds("the part is back", func() {
			w.down = nil
			w.parts[bundle] = kept
		}, false, 2)
		finds("it is lost again", func() { delete(w.parts, bundle) }, true, 3)
		finds("a log that is not signed", func() { w.head = publiclog.Head{} }, false, 3)
		calls := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.calls
		}
		for before := calls(); calls() == before; { // wait until a verification has begun
			time.Sleep(300 * time.Microsecond)
		}
		stop()
		<-ended
		if len(said) != 3 {
			t.Errorf("got the reports %v after the end, want none", said[3:])
		}
	})
}

// TestAPatrolLeavesTheStoreItsTime verifies a log in a store that needs a second for each read. The patrol must
// pause after each part.
func TestAPatrolLeavesTheStoreItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := expect.Get(translog.LogPolicy(key(t).Public()))(t)
		w := written(t)
		w.takes = time.Second
		before := w.calls
		ctx, stop := context.WithTimeout(t.Context(), 21*time.Second)
		defer stop()
		publiclog.NewPatrol(w, policy, time.Hour).Run(ctx, func(error) {})
		if got := w.calls - before; got < 4 || got > 6 { // the patrol rests four seconds after each part
			t.Errorf("got %d calls in 21 s, want 5", got)
		}
	})
}
