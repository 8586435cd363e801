package translog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	// TileHeight is the height of a tile. A full tile has TileWidth hashes.
	TileHeight = 8
	// TileWidth is the number of hashes of a full tile, and of entries of a full
	// entry bundle.
	TileWidth = 1 << TileHeight
	// Entries is the level of the entry bundles.
	Entries = -1

	maxLevel = 63
	maxIndex = MaxSize / TileWidth
)

// Tile names a tile or an entry bundle of tlog-tiles.
type Tile struct {
	Level int   // 0 to 63, or Entries
	Index int64 // index within the level, from 0
	Width int   // 1 to TileWidth; in a partial tile less than TileWidth
}

// IsFull reports whether the tile is full. Full tiles never change.
func (t Tile) IsFull() bool { return t.Width == TileWidth }

// Full returns the full tile of which t is a part.
func (t Tile) Full() Tile { t.Width = TileWidth; return t }

// Path returns the path of the tile below the log's prefix, such as
// "tile/0/x001/234.p/5".
func (t Tile) Path() string {
	path := fmt.Sprintf("%03d", t.Index%1000)
	for n := t.Index / 1000; n > 0; n /= 1000 {
		path = fmt.Sprintf("x%03d/%s", n%1000, path)
	}
	level := "entries"
	if t.Level != Entries {
		level = strconv.Itoa(t.Level)
	}
	path = "tile/" + level + "/" + path
	if !t.IsFull() {
		path += ".p/" + strconv.Itoa(t.Width)
	}
	return path
}

// ErrPath is the error for a path that is not the path of a tile.
var ErrPath = errors.New("not the path of a tile")

// ParsePath reads the path of a tile below the log's prefix. It accepts only paths that Path returns, and
// returns ErrPath for all others.
func ParsePath(path string) (Tile, error) {
	t := Tile{Width: TileWidth}
	rest, ok := strings.CutPrefix(path, "tile/")
	if !ok || len(rest) > 64 {
		return Tile{}, ErrPath
	}
	level, number, _ := strings.Cut(rest, "/")
	if level == "entries" {
		t.Level = Entries
	} else if n, err := strconv.ParseUint(level, 10, 8); err != nil || n > maxLevel {
		return Tile{}, ErrPath
	} else {
		t.Level = int(n)
	}
	number, width, partial := strings.Cut(number, ".p/")
	if partial {
		n, err := strconv.ParseUint(width, 10, 8)
		if err != nil || n < 1 {
			return Tile{}, ErrPath
		}
		t.Width = int(n)
	}
	for group := range strings.SplitSeq(number, "/") {
		n, err := strconv.ParseUint(strings.TrimPrefix(group, "x"), 10, 16)
		if err != nil || n > 999 || t.Index > maxIndex/1000 {
			return Tile{}, ErrPath
		}
		t.Index = t.Index*1000 + int64(n)
	}
	if t.Path() != path { // the path has a sign, lacks zeroes or has a wrong x
		return Tile{}, ErrPath
	}
	return t, nil
}

// ErrPart is the cause of every error about the data of a tile or bundle.
var ErrPart = errors.New("malformed tile")

// Cut returns the data of the tile. The argument `data` must have the data of the same tile, or of a tile that differs
// only in its larger width. Cut returns the beginning of `data`. If the data are too short, or if a bundle is damaged,
// it returns an error with the cause ErrPart.
func (t Tile) Cut(data []byte) ([]byte, error) {
	end := t.Width * tlog.HashSize
	if t.Level == Entries {
		end = 0
		for range t.Width {
			if end+2 > len(data) {
				return nil, fmt.Errorf("%w: %s has too few entries", ErrPart, t.Path())
			}
			end += 2 + int(binary.BigEndian.Uint16(data[end:]))
		}
	}
	if end > len(data) {
		return nil, fmt.Errorf("%w: %s has %d bytes, want %d", ErrPart, t.Path(), len(data), end)
	}
	return data[:end:end], nil
}

// AppendEntry appends an entry to an entry bundle. It returns an error with the
// cause ErrPart if the entry is longer than 65,535 bytes.
func AppendEntry(bundle, entry []byte) ([]byte, error) {
	if len(entry) > 1<<16-1 {
		return nil, fmt.Errorf("%w: an entry of %d bytes", ErrPart, len(entry))
	}
	bundle = binary.BigEndian.AppendUint16(bundle, uint16(len(entry)))
	return append(bundle, entry...), nil
}

// ParseBundle returns the entries of an entry bundle. The argument `width` must be the number of entries. The entries
// share the memory of `data`. Errors have the cause ErrPart.
func ParseBundle(data []byte, width int) ([][]byte, error) {
	entries := make([][]byte, 0, max(0, min(width, TileWidth)))
	for rest := data; len(rest) > 0; {
		if len(rest) < 2 {
			return nil, fmt.Errorf("%w: an entry bundle ends in a length", ErrPart)
		}
		end := 2 + int(binary.BigEndian.Uint16(rest))
		if end > len(rest) {
			return nil, fmt.Errorf("%w: an entry bundle ends in an entry", ErrPart)
		}
		if len(entries) == width {
			return nil, fmt.Errorf("%w: an entry bundle has more than %d entries", ErrPart, width)
		}
		entries = append(entries, rest[2:end:end])
		rest = rest[end:]
	}
	if len(entries) != width {
		return nil, fmt.Errorf("%w: an entry bundle has %d entries, want %d", ErrPart, len(entries), width)
	}
	return entries, nil
}

// EdgeTiles returns the partial tiles of a tree of the given size, from level 0 up. If the tree has a partial entry
// bundle, the bundle comes last.
func EdgeTiles(size int64) []Tile {
	var tiles []Tile
	for level, n := 0, size; n > 0; level, n = level+1, n>>TileHeight {
		if width := int(n % TileWidth); width > 0 {
			tiles = append(tiles, Tile{Level: level, Index: n >> TileHeight, Width: width})
		}
	}
	if width := int(size % TileWidth); width > 0 {
		tiles = append(tiles, Tile{Level: Entries, Index: size >> TileHeight, Width: width})
	}
	return tiles
}

// BundleOf returns the entry bundle that holds a leaf, in a tree of the given size.
func BundleOf(leaf, size int64) Tile {
	index := leaf / TileWidth
	return Tile{Level: Entries, Index: index, Width: int(min(TileWidth, size-index*TileWidth))}
}
