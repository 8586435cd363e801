package translog

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/expect"
)

// memory is a log in memory. It has the checkpoint, and each part by its path. It
// keeps only those partial parts that belong to the last size.
type memory struct {
	parts      map[string][]byte
	checkpoint []byte
}

func (m memory) ReadPart(_ context.Context, tile Tile) ([]byte, error) {
	data, ok := m.parts[tile.Path()]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (m memory) ReadCheckpoint(context.Context) ([]byte, error) { return m.checkpoint, nil }

// leafAt returns a valid leaf.
func leafAt(i int64) []byte {
	return Leaf{1790000000000000 + i, assetID, i + 1, Change, Commitment{byte(i), byte(i >> 8), 1}}.Encode()
}

func leaves(from, to int64) [][]byte {
	var all [][]byte
	for i := from; i < to; i++ {
		all = append(all, leafAt(i))
	}
	return all
}

// grow returns a log with the given number of leaves. It appends the leaves in batches of `batch` leaves.
func grow(t testing.TB, size, batch int64) (Tree, memory) {
	t.Helper()
	var tree Tree
	m := memory{parts: map[string][]byte{}}
	for from := int64(0); from < size; from += batch {
		grown, full, err := tree.Append(leaves(from, min(from+batch, size)))
		expect.OK(t, err)
		tree = grown
		for _, part := range full {
			m.parts[part.Tile.Path()] = part.Data
		}
	}
	for _, part := range tree.Edge() {
		m.parts[part.Tile.Path()] = part.Data
	}
	return tree, m
}

// hashes is a storage for package tlog. The tests compare the results of package tlog with ours.
type hashes []tlog.Hash

func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var all []tlog.Hash
	for _, i := range indexes {
		all = append(all, h[i])
	}
	return all, nil
}

// reference returns the hashes that package tlog computes for a log with the given number of leaves.
func reference(t testing.TB, size int64) hashes {
	t.Helper()
	var all hashes
	for i := range size {
		more, err := tlog.StoredHashes(i, leafAt(i), all)
		expect.OK(t, err)
		all = append(all, more...)
	}
	return all
}

// Promises: tiles
func TestATreeHasTheRootsAndTilesOfRFC6962(t *testing.T) {
	const most = 66000
	all := reference(t, most)
	for _, size := range []int64{0, 1, 2, 3, 255, 256, 257, 511, 512, 1000, 65535, 65536, 65537, most} {
		tree, m := grow(t, size, 997)
		want, err := tlog.TreeHash(size, all)
		expect.OK(t, err)
		if tree.Size() != size || tree.Root() != want {
			t.Errorf("got the root %s of %d leaves, want %s of %d", tree.Root(), tree.Size(), want, size)
		}
		checkTiles(t, size, m, all)
	}
}

// checkTiles compares the tiles of a log with the tiles that package tlog computes, and the bundles with the
// leaves. The log may have no other parts.
func checkTiles(t *testing.T, size int64, m memory, all hashes) {
	t.Helper()
	count := 0
	for _, tile := range tlog.NewTiles(TileHeight, 0, size) {
		want, err := tlog.ReadTileData(tile, all)
		expect.OK(t, err)
		count++
		if path := (Tile{tile.L, tile.N, tile.W}).Path(); !bytes.Equal(m.parts[path], want) {
			t.Errorf("got another %s of a log of %d, want package tlog's", path, size)
		}
	}
	for first := int64(0); first < size; first += TileWidth {
		tile := BundleOf(first, size)
		entries, err := ParseBundle(m.parts[tile.Path()], tile.Width)
		expect.OK(t, err)
		count++
		for i, entry := range entries {
			if !bytes.Equal(entry, leafAt(first+int64(i))) {
				t.Errorf("got %s as entry %d, want %s", entry, first+int64(i), leafAt(first+int64(i)))
			}
		}
	}
	expect.ErrorIf(t, count != len(m.parts), "got %d parts of a log of %d, want %d", len(m.parts), size, count)
}

// Promises: log-parts
func TestATreeDoesNotDependOnTheBatches(t *testing.T) {
	wantTree, want := grow(t, 3000, 3000)
	for _, batch := range []int64{1, 7, 256, 1000} {
		tree, got := grow(t, 3000, batch)
		if tree.Root() != wantTree.Root() || len(got.parts) != len(want.parts) {
			t.Errorf("got the root %s and %d parts of batches of %d, want %s and %d", tree.Root(), len(got.parts), batch,
				wantTree.Root(), len(want.parts))
		}
		for path, data := range want.parts {
			expect.ErrorIf(t, !bytes.Equal(got.parts[path], data), "got another %s of batches of %d", path, batch)
		}
	}
}

func TestAppendDoesNotChangeTheTree(t *testing.T) {
	tree, _ := grow(t, 300, 300)
	root := tree.Root()
	before, _ := tree.MarshalBinary()
	for range 2 {
		grown, _, err := tree.Append(leaves(300, 1000))
		expect.OK(t, err)
		if want, _ := grow(t, 1000, 1000); grown.Root() != want.Root() {
			t.Errorf("got the root %s, want %s", grown.Root(), want.Root())
		}
	}
	if after, _ := tree.MarshalBinary(); tree.Root() != root || !bytes.Equal(before, after) {
		t.Error("got another tree after Append, want the same")
	}
}

func TestEveryEarlierPartCanBeRead(t *testing.T) {
	const size = 1300
	tree, m := grow(t, size, size)
	for earlier := int64(1); earlier <= size; earlier++ {
		for _, want := range EdgeTiles(earlier) {
			data, ok := tree.Part(want)
			if !ok {
				var err error
				if data, err = want.Cut(m.parts[want.Full().Path()]); err != nil {
					t.Fatalf("%s of size %d: %v", want.Path(), earlier, err)
				}
			}
			small := memory{map[string][]byte{want.Path(): data}, nil}
			if earlier%97 == 0 { // for some sizes, also compare with a log that stopped growing at this size
				_, m := grow(t, earlier, earlier)
				if !bytes.Equal(small.parts[want.Path()], m.parts[want.Path()]) {
					t.Errorf("got another %s of size %d", want.Path(), earlier)
				}
			}
		}
	}
	for _, tile := range []Tile{{0, 5, 21}, {0, 6, 1}, {1, 0, 6}, {2, 0, 1}, {Entries, 5, 21}, {Entries, 4, 1}} {
		if _, ok := tree.Part(tile); ok {
			t.Errorf("got %s of a log of %d, want none", tile.Path(), size)
		}
	}
}

func TestAStoredTreeIsReadOrFoundDamaged(t *testing.T) {
	for _, size := range []int64{0, 1, 255, 256, 700} {
		tree, _ := grow(t, size, 100)
		data, err := tree.MarshalBinary()
		expect.OK(t, err)
		var got Tree
		if err := got.UnmarshalBinary(data); err != nil || got.Size() != size || got.Root() != tree.Root() {
			t.Errorf("got %d leaves, %v, want %d", got.Size(), err, size)
		}
		a, _, errA := got.Append(leaves(size, size+600))
		b, _, errB := tree.Append(leaves(size, size+600))
		if errA != nil || errB != nil || a.Root() != b.Root() {
			t.Errorf("got the root %s after more leaves, want %s", a.Root(), b.Root())
		}
		for i := 0; i < len(data); i += 1 + len(data)/500 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << (i % 8)
			if err := got.UnmarshalBinary(damaged); err == nil && got.Root() == tree.Root() && got.Size() == size {
				t.Fatalf("got the same tree of %d leaves with byte %d flipped, want an error or another root", size, i)
			}
		}
		expect.Fails(t, got.UnmarshalBinary(append(data, 0)), "")
	}
}

func FuzzUnmarshalTree(f *testing.F) {
	for _, size := range []int64{0, 3, 300} {
		tree, _ := grow(f, size, 100)
		data, err := tree.MarshalBinary()
		expect.OK(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var tree Tree
		if tree.UnmarshalBinary(data) != nil {
			return
		}
		tree.Root()
		if again, err := tree.MarshalBinary(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("got %x, %v, want %x", again, err, data)
		}
	})
}

// BenchmarkAppend appends batches of leaves to a tree, as an asset service does once a second.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int64{100, 5000} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			tree, _ := grow(b, 100000, 5000)
			more := leaves(100000, 100000+batch)
			b.ReportAllocs()
			for b.Loop() {
				grown, _, err := tree.Append(more)
				expect.OK(b, err)
				grown.Root()
			}
			b.ReportMetric(float64(batch)*float64(b.N)/b.Elapsed().Seconds(), "leaves/s")
		})
	}
}
