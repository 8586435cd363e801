package publiclog_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/translog"
)

// filled returns a world with 400 changes, of which 300 are public, and a writer for it.
func filled(t *testing.T) (*world, *publiclog.Writer) {
	t.Helper()
	w := newWorld(1)
	w.calm, w.most, w.horizon = true, 1000, 400
	for position := int64(1); position <= w.horizon; position++ {
		w.changes = append(w.changes, change(t, position))
	}
	return w, publiclog.NewWriter(w, w, publiclog.Options{Keys: []translog.Key{key(t)}})
}

// written returns a world whose log has all changes and is signed.
func written(t *testing.T) *world {
	t.Helper()
	w, writer := filled(t)
	_, _, extended := writer.Extend(t.Context())
	_, signed := writer.Sign(t.Context())
	if err := errors.Join(extended, signed); err != nil {
		t.Fatal(err)
	}
	return w
}

var errDown = errors.New("down")

// TestAStoreThatDoesNotAnswerIsAnError lets each call of the store fail in turn.
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
			for works, done := 0, false; !done; works++ {
				synctest.Test(t, func(t *testing.T) {
					w, do := c.prepare(t)
					w.down, w.works = errDown, works
					err := do(t.Context())
					done = !w.refused
					if done && (err != nil || works == 0) || !done && !errors.Is(err, errDown) {
						t.Errorf("the store fails after %d calls: got %v, want its error", works, err)
					}
				})
			}
		})
	}
}

// TestASourceThatDoesNotAnswerIsAnError lets each call of the source of a copy fail in turn: the first ones, and those
// at the end of a step of 64 bundles.
func TestASourceThatDoesNotAnswerIsAnError(t *testing.T) {
	small, large := newOrigin(t, "log.example/log", 300), newOrigin(t, "log.example/log", 17_000)
	for works := 0; ; works++ {
		copier, to := newCopier(t, small)
		if err := copier.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		left, failed := works, false
		large.asked = func() error {
			if left--; left < 0 {
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
		if !errors.Is(err, errDown) {
			t.Fatalf("call %d fails: got %v, want its error", works+1, err)
		}
		if works == 3 {
			works = 62
		}
	}
}

// TestACheckpointWithoutWitnessesIsNotPublished has witnesses that do not answer.
func TestACheckpointWithoutWitnessesIsNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := filled(t)
		writer := publiclog.NewWriter(w, w, publiclog.Options{Keys: []translog.Key{key(t)}, Cosign: func(
			context.Context, translog.Checkpoint, []byte,
		) ([]byte, error) {
			return nil, errDown
		}})
		if _, _, err := writer.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		won, err := writer.Sign(t.Context())
		if won || !errors.Is(err, errDown) || w.head.Checkpoint != nil {
			t.Errorf("got %v, %v and the checkpoint %q; want the error of the witnesses and none", won, err, w.head.Checkpoint)
		}
	})
}
