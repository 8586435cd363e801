package publiclog_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// filled returns a world with 400 changes, 300 of them public, and a writer for it.
func filled(t *testing.T) (*world, *publiclog.Writer) {
	t.Helper()
	w := newWorld(1)
	w.calm, w.most, w.horizon = true, 1000, 400
	for position := int64(1); position <= w.horizon; position++ {
		w.changes = append(w.changes, change(t, position))
	}
	return w, publiclog.NewWriter(w, w, publiclog.Options{Keys: []translog.Key{key(t)}})
}

// written returns a world whose log has all changes and a checkpoint.
func written(t *testing.T) *world {
	t.Helper()
	w, writer := filled(t)
	_, _, extended := writer.Extend(t.Context())
	_, signed := writer.Sign(t.Context())
	expect.OK(t, errors.Join(extended, signed))
	return w
}

var errDown = errors.New("down")

// TestAStoreThatDoesNotAnswerIsAnError makes each call of the store fail in turn, either only this call, or this
// and all later calls. The error of the store must be returned.
func TestAStoreThatDoesNotAnswerIsAnError(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T) (w *world, do func(ctx context.Context) error)
	}{
		{"the log is extended", func(t *testing.T) (*world, func(context.Context) error) {
			w, writer := filled(t)
			return w, func(ctx context.Context) error {
				_, _, err := writer.Extend(ctx)
				return err
			}
		}},
		{"the log is signed", func(t *testing.T) (*world, func(context.Context) error) {
			w, writer := filled(t)
			if _, _, err := writer.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w, func(ctx context.Context) error {
				_, err := writer.Sign(ctx)
				return err
			}
		}},
		{"a change is proved", func(t *testing.T) (*world, func(context.Context) error) {
			w := written(t)
			return w, func(ctx context.Context) error {
				_, _, err := publiclog.NewReader(w).Prove(ctx, 399)
				return err
			}
		}},
		{"a leaf is read", func(t *testing.T) (*world, func(context.Context) error) {
			w := written(t)
			return w, func(ctx context.Context) error {
				_, err := publiclog.NewReader(w).LeafAt(ctx, 399)
				return err
			}
		}},
		{"a full part is read", func(t *testing.T) (*world, func(context.Context) error) {
			w := written(t)
			return w, func(ctx context.Context) error {
				_, err := publiclog.NewReader(w).Part(ctx, translog.BundleOf(0, 300))
				return err
			}
		}},
		{"a partial part is read", func(t *testing.T) (*world, func(context.Context) error) {
			w := written(t)
			return w, func(ctx context.Context) error {
				_, err := publiclog.NewReader(w).Part(ctx, translog.BundleOf(299, 300))
				return err
			}
		}},
		{"the log is copied", func(t *testing.T) (*world, func(context.Context) error) {
			copier, w := newCopier(t, newOrigin(t, "log.example/log", 300))
			return w, copier.CatchUp
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, done := 0, false; !done; i++ {
				synctest.Test(t, func(t *testing.T) {
					works := i / 2
					w, do := c.prepare(t)
					w.down, w.works, w.once = errDown, works, i%2 == 0
					err := do(t.Context())
					done = !w.refused
					if done && (err != nil || works == 0) || !done && !errors.Is(err, errDown) ||
						errors.Is(err, registry.ErrDamagedLog) {
						t.Errorf("the store fails after %d calls: got %v, want its error", works, err)
					}
				})
			}
		})
	}
}

// TestASourceThatDoesNotAnswerIsAnError copies a log, and lets one call of the source fail. It does so for each of
// the first calls, and for each call at the end of a step of 64 bundles. The error must be returned.
func TestASourceThatDoesNotAnswerIsAnError(t *testing.T) {
	small, large := newOrigin(t, "log.example/log", 300), newOrigin(t, "log.example/log", 17_000)
	for works := 0; ; works++ {
		copier, to := newCopier(t, small)
		expect.OK(t, copier.CatchUp(t.Context()))
		left, failed := works, false
		large.asked = func() error {
			if left--; left == -1 { // only this call fails
				failed = true
				return errDown
			}
			return nil
		}
		copier.Source = large
		err := copier.CatchUp(t.Context())
		if !failed {
			if err != nil || works < 64 {
				t.Errorf("got %v after %d calls, want no error after the calls of a step", err, works)
			}
			equalParts(t, large, to)
			return
		}
		expect.FatalIf(t, !errors.Is(err, errDown), "call %d fails: got %v, want its error", works+1, err)
		if works == 3 {
			works = 62
		}
	}
}

// TestACopierSaysHowEachLookEnds runs a copier whose source fails twice. After that, the function Check returns
// ErrAhead three times. Only the failures of the source may be reported.
func TestACopierSaysHowEachLookEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t, "log.example/log", 300)
		copier, to := newCopier(t, o)
		looks, ahead := 0, 0
		o.asked = func() error {
			if looks++; looks <= 2 {
				return errDown
			}
			return nil
		}
		copier.Check = func(int64, []translog.Leaf) error {
			if ahead++; ahead <= 3 {
				return publiclog.ErrAhead
			}
			return nil
		}
		ctx, stop := context.WithTimeout(t.Context(), 9*time.Second)
		defer stop()
		var said []bool // for each report: whether it had an error
		began := time.Now()
		copier.Run(ctx, func(err error) {
			said = append(said, err != nil)
			if len(said) == 3 && time.Since(began) > 5*time.Second {
				t.Errorf("got the first report without an error after %v, want it at the next look", time.Since(began))
			}
		})
		if !slices.Equal(said, []bool{true, true, false, false, false}) {
			t.Errorf("got reports with errors %v, want two, and then none at each look", said)
		}
		equalParts(t, o, to)
	})
}

// TestASecondProcessLeavesTheLogToTheFirst extends one log with two writers in turn. After one writer has changed
// the head, the first step of the other writer must do nothing.
func TestASecondProcessLeavesTheLogToTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, first := filled(t)
		w.most = 100
		second := publiclog.NewWriter(w, w, publiclog.Options{Keys: []translog.Key{key(t)}})
		for _, c := range []struct {
			name      string
			writer    *publiclog.Writer
			more, won bool
		}{
			{"the first", first, true, true},
			{"the second, which sees that log for the first time", second, true, true},
			{"the first, whose head another one has replaced", first, false, false},
			{"the first again", first, true, true},
			{"the second", second, false, false},
			{"the second again", second, false, true},
			{"the second, at the end", second, false, true},
		} {
			more, won, err := c.writer.Extend(t.Context())
			if err != nil || more != c.more || won != c.won {
				t.Fatalf("%s: got more %v, won %v, %v; want %v, %v", c.name, more, won, err, c.more, c.won)
			}
		}
		expect.Equal(t, w.head.Tree.Size(), 300, "leaves")
	})
}
