package publiclog_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// origin is the source of a copy: a log in memory.
type origin struct {
	key    translog.Key
	name   string
	tree   translog.Tree
	parts  map[string][]byte
	signed []byte
	behind int64                                 // the positions of new leaves are too low by this number
	spoil  func(path string, data []byte) []byte // returns the data to use in place of the real data; nil: real data
	asked  func() error                          // returns the error of the current call; nil: no call fails
}

func newOrigin(t *testing.T, name string, size int) *origin {
	t.Helper()
	key := expect.Get(translog.NewKey(translog.ForLog, name, make([]byte, 32)))(t)
	o := &origin{key: key, name: name, parts: map[string][]byte{}}
	o.grow(t, size, 0)
	return o
}

// grow adds leaves until the log has the given number of leaves. Leaves of different kinds make different trees.
func (o *origin) grow(t *testing.T, size, kind int) {
	t.Helper()
	var leaves [][]byte
	for i := o.tree.Size(); i < int64(size); i++ {
		leaves = append(leaves, translog.Leaf{Position: 100 + i - o.behind, Asset: fmt.Sprintf("%032x", kind), Revision: 1,
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
	expect.OK(t, err)
}

// repeat adds a leaf that has the same position as the last one.
func (o *origin) repeat(t *testing.T) {
	t.Helper()
	size := int(o.tree.Size())
	o.behind = 1
	o.grow(t, size+1, 0)
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

// newCopier returns a copier that trusts the key of the origin o. It also returns the world to which the copier
// copies.
func newCopier(t *testing.T, o *origin) (*publiclog.Copier, *world) {
	t.Helper()
	policy := expect.Get(translog.LogPolicy(o.key.Public()))(t)
	to := newWorld(1)
	to.calm, to.takes = true, 1
	return &publiclog.Copier{Store: to, Source: o, Policy: policy,
		Check: func(int64, []translog.Leaf) error { return nil }}, to
}

// equalParts checks that the copy has the same parts as the log at its newest checkpoint.
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
		if most := 64 * translog.TileWidth; len(leaves) > most {
			t.Errorf("got a step of %d leaves, want at most %d", len(leaves), most)
		}
		checked = append(checked, leaves...)
		return nil
	}
	for _, size := range []int{0, 1, 300, 300, 511, 512, 20_000} { // one step copies at most 16,384 leaves
		o.grow(t, size, 0)
		expect.Must(t, copier.CatchUp(t.Context()), "size %d", size)
		if size > 0 {
			equalParts(t, o, to)
		}
		if len(checked) != size || size > 0 && checked[size-1].Position != int64(99+size) {
			t.Errorf("got %d leaves checked, want %d", len(checked), size)
		}
		version := to.head.Version
		if err := copier.CatchUp(t.Context()); err != nil || to.head.Version != version {
			t.Errorf("size %d again: got %d changes of the copy, %v; want none", size, to.head.Version-version, err)
		}
	}
}

func TestNothingIsStoredThatIsNotVerified(t *testing.T) {
	// spoilt returns a function that changes the first bundle of the source. Some logs below are small, and
	// some are large: a small log is copied in one step, a large log in several steps.
	spoilt := func(change func(data []byte) []byte) func(*testing.T, *origin, *publiclog.Copier) {
		return func(_ *testing.T, o *origin, _ *publiclog.Copier) {
			o.spoil = func(path string, data []byte) []byte {
				if path == "tile/entries/000" {
					return change(data)
				}
				return data
			}
		}
	}
	otherAsset := func(data []byte) []byte {
		return bytes.Replace(data, []byte(strings.Repeat("0", 32)), []byte(strings.Repeat("0", 31)+"1"), 1)
	}
	for _, c := range []struct {
		name   string
		size   int
		change func(t *testing.T, o *origin, copier *publiclog.Copier)
		want   error
	}{
		{"another key", 20_000, func(t *testing.T, o *origin, copier *publiclog.Copier) {
			copier.Policy = newPolicy(t, "log.example/log", 9)
		}, translog.ErrSignature},
		{"a changed entry of the first step", 20_000, spoilt(otherAsset), translog.ErrConsistency},
		{"a changed entry of the only step", 300, spoilt(otherAsset), translog.ErrTampered},
		{"an entry that is no leaf", 300, spoilt(func(data []byte) []byte {
			data[2] = 'x' // the first byte after the length of the entry
			return data
		}), translog.ErrLeaf},
		{"a bundle that is cut off", 300, spoilt(func(data []byte) []byte { return data[:50] }), translog.ErrPart},
		{"leaves in another order", 300, func(t *testing.T, o *origin, _ *publiclog.Copier) {
			o.repeat(t)
		}, translog.ErrOrder},
		{"a check that fails", 20_000, func(_ *testing.T, _ *origin, copier *publiclog.Copier) {
			copier.Check = func(int64, []translog.Leaf) error { return publiclog.ErrAhead }
		}, publiclog.ErrAhead},
		{"entries that are missing", 20_000, func(_ *testing.T, o *origin, _ *publiclog.Copier) {
			delete(o.parts, "tile/entries/003")
		}, fs.ErrNotExist},
		{"the last entries are missing", 300, func(_ *testing.T, o *origin, _ *publiclog.Copier) {
			delete(o.parts, "tile/entries/001.p/44")
		}, fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, "log.example/log", c.size)
			copier, to := newCopier(t, o)
			c.change(t, o, copier)
			expect.Err(t, copier.CatchUp(t.Context()), c.want, "")
			if head := to.head; head.Tree.Size() != 0 || head.Checkpoint != nil || len(to.parts) > 0 {
				t.Errorf("got a copy of %d leaves and %d parts, want none", head.Tree.Size(), len(to.parts))
			}
		})
	}
}

// TestACopyReadsPartsThatHaveBecomeFull has a log that grows after the copier has read its checkpoint. The copy
// must have the leaves of that checkpoint.
func TestACopyReadsPartsThatHaveBecomeFull(t *testing.T) {
	o := newOrigin(t, "log.example/log", 300)
	signed, tree := o.signed, o.tree
	o.grow(t, 600, 0)
	o.signed = signed
	delete(o.parts, "tile/entries/001.p/44")
	copier, to := newCopier(t, o)
	if err := copier.CatchUp(t.Context()); err != nil || to.head.Tree.Root() != tree.Root() {
		t.Errorf("got a copy of %d leaves, %v; want the 300 leaves of the checkpoint", to.head.Tree.Size(), err)
	}
}

// TestACopyThatOthersChangeIsAnError copies a log twice. In the first copy, another process changes the copy
// during a step. The second copy has a malformed checkpoint. Both calls of CatchUp must return an error.
func TestACopyThatOthersChangeIsAnError(t *testing.T) {
	copier, to := newCopier(t, newOrigin(t, "log.example/log", 300))
	copier.Check = func(int64, []translog.Leaf) error {
		to.head.Version++
		return nil
	}
	expect.Says(t, copier.CatchUp(t.Context()), "another process", "")
	copier, to = newCopier(t, newOrigin(t, "log.example/log", 300))
	to.head.Checkpoint = []byte("x")
	expect.Err(t, copier.CatchUp(t.Context()), translog.ErrCheckpoint, "a malformed checkpoint")
}

// newPolicy returns a policy that trusts only a new key, with the given name and seed.
func newPolicy(t *testing.T, name string, seed byte) translog.Opener {
	t.Helper()
	bytes := make([]byte, 32)
	bytes[0] = seed
	key := expect.Get(translog.NewKey(translog.ForLog, name, bytes))(t)
	return expect.Get(translog.LogPolicy(key.Public()))(t)
}

func TestALogThatDoesNotContinueItsCopyIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(t *testing.T) *origin
		want  error // error of the copier
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
			expect.OK(t, copier.CatchUp(t.Context()))
			copier.Policy, copier.Source = nil, c.other(t)
			expect.Err(t, copier.CatchUp(t.Context()), c.want, "")
			equalParts(t, o, to)
		})
	}
	t.Run("a source that is behind", func(t *testing.T) {
		o := newOrigin(t, "log.example/log", 300)
		copier, to := newCopier(t, o)
		expect.OK(t, copier.CatchUp(t.Context()))
		copier.Source = newOrigin(t, "log.example/log", 200)
		expect.Try(t, copier.CatchUp(t.Context()))
		equalParts(t, o, to)
	})
}
