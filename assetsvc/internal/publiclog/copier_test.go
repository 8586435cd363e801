package publiclog_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/translog"
)

// origin is a log that is copied.
type origin struct {
	key    translog.Key
	name   string
	tree   translog.Tree
	parts  map[string][]byte
	signed []byte
	spoil  func(path string, data []byte) []byte // what is read instead; nil: what is there
	asked  func() error                          // the error of a call; nil: none fails
}

func newOrigin(t *testing.T, name string, size int) *origin {
	t.Helper()
	key, err := translog.NewKey(translog.ForLog, name, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{key: key, name: name, parts: map[string][]byte{}}
	o.grow(t, size, 0)
	return o
}

// grow adds leaves. Those of another kind make another tree.
func (o *origin) grow(t *testing.T, size, kind int) {
	t.Helper()
	var leaves [][]byte
	for i := o.tree.Size(); i < int64(size); i++ {
		leaves = append(leaves, translog.Leaf{Position: 100 + i, Asset: fmt.Sprintf("%032x", kind), Revision: 1,
			Kind: translog.Withdraw}.Encode())
	}
	tree, full, err := o.tree.Append(leaves)
	if err == nil {
		o.tree = tree
		for _, part := range append(full, tree.Edge()...) {
			o.parts[part.Tile.Path()] = part.Data
		}
		o.signed, err = translog.Sign(translog.Checkpoint{Origin: o.name, Size: tree.Size(), Root: tree.Root()}, o.key)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (o *origin) ReadCheckpoint(context.Context) ([]byte, error) {
	if o.asked != nil {
		if err := o.asked(); err != nil {
			return nil, err
		}
	}
	if o.tree.Size() == 0 {
		return nil, fs.ErrNotExist
	}
	return o.signed, nil
}

func (o *origin) ReadPart(_ context.Context, tile translog.Tile) ([]byte, error) {
	if o.asked != nil {
		if err := o.asked(); err != nil {
			return nil, err
		}
	}
	data, there := o.parts[tile.Path()]
	if !there {
		return nil, fs.ErrNotExist
	}
	if o.spoil != nil {
		data = o.spoil(tile.Path(), append([]byte(nil), data...))
	}
	return data, nil
}

// newCopier returns a copier into memory that trusts the key of o.
func newCopier(t *testing.T, o *origin) (*publiclog.Copier, *world) {
	t.Helper()
	policy, err := translog.LogPolicy(o.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	to := newWorld(1)
	to.calm, to.takes = true, 1
	return &publiclog.Copier{Store: to, Source: o, Policy: policy,
		Check: func(int64, []translog.Leaf) error { return nil }}, to
}

// equalParts compares the copy with the log at its newest checkpoint.
func equalParts(t *testing.T, o *origin, to publiclog.Store) {
	t.Helper()
	reader := publiclog.NewReader(to)
	if signed, err := reader.Checkpoint(t.Context()); err != nil || string(signed) != string(o.signed) {
		t.Errorf("got the checkpoint %q, %v, want %q", signed, err, o.signed)
	}
	for _, tile := range append(translog.EdgeTiles(o.tree.Size()), translog.BundleOf(0, o.tree.Size())) {
		got, err := reader.Part(t.Context(), tile)
		if want := o.parts[tile.Path()]; err != nil || string(got) != string(want) {
			t.Errorf("%s: got %x, %v, want %x", tile.Path(), got, err, want)
		}
	}
}

func TestACopyOfALogFollowsIt(t *testing.T) {
	o := newOrigin(t, "log.example/log", 0)
	copier, to := newCopier(t, o)
	var checked []translog.Leaf
	copier.Check = func(after int64, leaves []translog.Leaf) error {
		if len(checked) > 0 && after != checked[len(checked)-1].Position {
			t.Errorf("got leaves after %d, want them after %d", after, checked[len(checked)-1].Position)
		}
		checked = append(checked, leaves...)
		return nil
	}
	for _, size := range []int{0, 1, 300, 300, 511, 512, 20_000} { // a step has 16,384 leaves
		o.grow(t, size, 0)
		if err := copier.CatchUp(t.Context()); err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		if size > 0 {
			equalParts(t, o, to)
		}
		if len(checked) != size {
			t.Errorf("got %d leaves checked, want %d", len(checked), size)
		}
	}
}

func TestNothingIsStoredThatIsNotVerified(t *testing.T) {
	const size = 20_000
	for _, c := range []struct {
		name   string
		change func(t *testing.T, o *origin, copier *publiclog.Copier)
		want   error
	}{
		{"another key", func(t *testing.T, o *origin, copier *publiclog.Copier) {
			copier.Policy = newPolicy(t, "log.example/log", 9)
		}, translog.ErrSignature},
		{"a changed entry", func(_ *testing.T, o *origin, _ *publiclog.Copier) {
			o.spoil = func(path string, data []byte) []byte {
				if path == "tile/entries/000" {
					data[20] ^= 1 // within the id of an asset
				}
				return data
			}
		}, nil},
		{"a check that fails", func(_ *testing.T, _ *origin, copier *publiclog.Copier) {
			copier.Check = func(int64, []translog.Leaf) error { return publiclog.ErrAhead }
		}, publiclog.ErrAhead},
		{"entries that are missing", func(_ *testing.T, o *origin, _ *publiclog.Copier) {
			delete(o.parts, "tile/entries/003")
		}, fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, "log.example/log", size)
			copier, to := newCopier(t, o)
			c.change(t, o, copier)
			if err := copier.CatchUp(t.Context()); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if head, err := to.LogHead(t.Context()); err != nil || head.Tree.Size() != 0 || head.Checkpoint != nil {
				t.Errorf("got a copy of %d leaves, %v, want none", head.Tree.Size(), err)
			}
		})
	}
}

// newPolicy trusts a key with a name that no log of these tests has.
func newPolicy(t *testing.T, name string, seed byte) translog.Opener {
	t.Helper()
	bytes := make([]byte, 32)
	bytes[0] = seed
	key, err := translog.NewKey(translog.ForLog, name, bytes)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := translog.LogPolicy(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func TestALogThatDoesNotContinueItsCopyIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(t *testing.T) *origin
		want  error // nil: any
	}{
		{"another log", func(t *testing.T) *origin { return newOrigin(t, "other.example/log", 400) }, publiclog.ErrOtherLog},
		{"another tree", func(t *testing.T) *origin {
			o := newOrigin(t, "log.example/log", 0)
			o.grow(t, 400, 7)
			return o
		}, translog.ErrTampered},
		{"another tree of the same size", func(t *testing.T) *origin {
			o := newOrigin(t, "log.example/log", 0)
			o.grow(t, 300, 7)
			return o
		}, translog.ErrTampered},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, "log.example/log", 300)
			copier, to := newCopier(t, o)
			if err := copier.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			copier.Policy, copier.Source = nil, c.other(t)
			if err := copier.CatchUp(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			equalParts(t, o, to)
		})
	}
	t.Run("a source that is behind", func(t *testing.T) {
		o := newOrigin(t, "log.example/log", 300)
		copier, to := newCopier(t, o)
		if err := copier.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		copier.Source = newOrigin(t, "log.example/log", 200)
		if err := copier.CatchUp(t.Context()); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		equalParts(t, o, to)
	})
}
