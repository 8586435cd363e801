package translog

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// Promises: tile-paths
func TestPathsOfTiles(t *testing.T) {
	for _, c := range []struct {
		tile Tile
		want string
	}{
		{Tile{0, 0, 256}, "tile/0/000"},
		{Tile{0, 273, 112}, "tile/0/273.p/112"},
		{Tile{63, 999, 1}, "tile/63/999.p/1"},
		{Tile{2, 1000, 256}, "tile/2/x001/000"},
		{Tile{0, 1234067, 256}, "tile/0/x001/x234/067"}, // the example of tlog-tiles
		{Tile{Entries, 1234067, 8}, "tile/entries/x001/x234/067.p/8"},
		{Tile{Entries, maxIndex, 256}, "tile/entries/x004/x503/x599/x627/x370/496"},
	} {
		expect.Equal(t, c.tile.Path(), c.want, "")
		if got, err := ParsePath(c.want); err != nil || got != c.tile {
			t.Errorf("got %+v, %v of %s, want %+v", got, err, c.want, c.tile)
		}
	}
}

// Promises: tile-paths
func TestParsePathRefuses(t *testing.T) {
	for _, path := range []string{
		"", "tile", "tile/", "tile/0", "tile/0/", "tile//000", "/tile/0/000", "tile/0/000/",
		"tile/8/0/000", "tile/data/000", "tile/00/000", "tile/64/000", "tile/-1/000", "tile/+1/000", "tile/0x1/000",
		"tile/0/0", "tile/0/0000", "tile/0/x000/000", "tile/0/x001", "tile/0/001/000", "tile/0/x001/x000", "tile/0/1000",
		"tile/0/-01", "tile/0/xx01/000", "tile/0/X001/000", "tile/0/00a",
		"tile/0/000.p", "tile/0/000.p/", "tile/0/000.p/0", "tile/0/000.p/01", "tile/0/000.p/256", "tile/0/000.p/-1",
		"tile/0/000.p/1.p/1", "tile/0/000.p/1/1", "tile/0/000%2ep/1",
		"tile/0/x009/x223/x372/x036/x854/x775/807", "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
		"tile/entries", "tile/entries/../0/000",
	} {
		if got, err := ParsePath(path); !errors.Is(err, ErrPath) {
			t.Errorf("got %+v, %v of %q, want %v", got, err, path, ErrPath)
		}
	}
}

func TestEdgeOfATree(t *testing.T) {
	for _, c := range []struct {
		name string
		size int64
		want []Tile
	}{
		{"an empty log", 0, nil},
		{"one leaf", 1, []Tile{{0, 0, 1}, {Entries, 0, 1}}},
		{"256 leaves", 256, []Tile{{1, 0, 1}}}, // the example of tlog-tiles
		{"70,000 leaves", 70000, []Tile{{0, 273, 112}, {1, 1, 17}, {2, 0, 1}, {Entries, 273, 112}}}, // as in tlog-tiles
	} {
		t.Run(c.name, func(t *testing.T) { expect.NoDiff(t, cmp.Diff(c.want, EdgeTiles(c.size)), "the tiles") })
	}
}

// Promises: bundles
func TestBundlesHoldEntries(t *testing.T) {
	entries := [][]byte{[]byte("a"), {}, bytes.Repeat([]byte("b"), 1<<16-1)}
	var bundle []byte
	for _, entry := range entries {
		var err error
		bundle, err = AppendEntry(bundle, entry)
		expect.OK(t, err)
	}
	if want := "\x00\x01a\x00\x00\xff\xffb"; !strings.HasPrefix(string(bundle), want) {
		t.Errorf("got %q, want %q", bundle[:len(want)], want)
	}
	got, err := ParseBundle(bundle, len(entries))
	expect.OK(t, err)
	expect.NoDiff(t, cmp.Diff(entries, got), "the entries")
	if _, err := AppendEntry(nil, make([]byte, 1<<16)); !errors.Is(err, ErrPart) {
		t.Errorf("got %v of an entry that is too long, want %v", err, ErrPart)
	}
	for _, c := range []struct {
		name  string
		data  []byte
		width int
	}{
		{"fewer entries", bundle, 4},
		{"more entries", bundle, 2},
		{"an end in an entry", bundle[:len(bundle)-1], 3},
		{"an end in a length", append(bytes.Clone(bundle), 0), 4},
		{"nothing", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := ParseBundle(c.data, c.width); !errors.Is(err, ErrPart) {
				t.Errorf("got %d entries, %v, want %v", len(got), err, ErrPart)
			}
		})
	}
}

func FuzzParsePath(f *testing.F) {
	for _, path := range []string{"tile/0/000", "tile/63/x001/234.p/5", "tile/entries/x001/x234/067"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		tile, err := ParsePath(path)
		if err == nil && (tile.Path() != path || tile.Width < 1 || tile.Width > TileWidth || tile.Index < 0) {
			t.Errorf("got %+v of %q", tile, path)
		}
	})
}

func FuzzParseBundle(f *testing.F) {
	f.Add([]byte("\x00\x01a\x00\x00"), 2)
	f.Add([]byte("0"), -61)
	f.Fuzz(func(t *testing.T, data []byte, width int) {
		entries, err := ParseBundle(data, width)
		if err != nil {
			return
		}
		var again []byte
		for _, entry := range entries {
			again, err = AppendEntry(again, entry)
			expect.OK(t, err)
		}
		expect.ErrorIf(t, !bytes.Equal(again, data) || len(entries) != width,
			"got %d entries of %d bytes, want %d of %d", len(entries), len(again), width, len(data))
	})
}
