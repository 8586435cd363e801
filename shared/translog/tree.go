package translog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// Part is a tile or an entry bundle with its data.
type Part struct {
	Tile Tile
	Data []byte
}

// Tree is the right edge of a log: the partial tiles and the partial entry bundle.
// New leaves are appended to these. The zero value is an empty log. A Tree is a
// value: only UnmarshalBinary changes it.
//
// A store keeps all full parts, and the Tree of the newest size. Each part of an earlier size is the
// beginning of a full part (Tile.Cut) or of a part in the Tree (Tree.Part).
type Tree struct {
	size   int64
	levels [][]byte // the partial tile of each level
	bundle []byte
}

// Size returns the number of leaves.
func (t Tree) Size() int64 { return t.size }

// Append returns the tree with the given leaves appended. It also returns the parts that these leaves completed, in
// a fixed order. The same tree and leaves always give the same result. If a leaf is longer than 65,535 bytes, Append
// returns an error with the cause ErrPart. It also returns an error if the tree would have more than MaxSize leaves.
func (t Tree) Append(leaves [][]byte) (Tree, []Part, error) {
	if int64(len(leaves)) > MaxSize-t.size {
		return t, nil, errors.New("the log is full")
	}
	grown := Tree{size: t.size, bundle: slices.Clone(t.bundle)}
	for _, level := range t.levels {
		grown.levels = append(grown.levels, append(make([]byte, 0, TileWidth*tlog.HashSize), level...))
	}
	var full []Part
	for _, leaf := range leaves {
		var err error
		if grown.bundle, err = AppendEntry(grown.bundle, leaf); err != nil {
			return t, nil, err
		}
		full = grown.push(full, 0, tlog.RecordHash(leaf))
		grown.size++
		if grown.size%TileWidth == 0 {
			full = append(full, Part{Tile{Entries, grown.size/TileWidth - 1, TileWidth}, grown.bundle})
			grown.bundle = nil
		}
	}
	return grown, full, nil
}

// push appends a hash to the partial tile of a level. If this completes the tile, push appends the tile to the list
// `full`, and pushes the tile's root to the level above. It returns `full`.
func (t *Tree) push(full []Part, level int, hash tlog.Hash) []Part {
	if level == len(t.levels) {
		t.levels = append(t.levels, make([]byte, 0, TileWidth*tlog.HashSize))
	}
	t.levels[level] = append(t.levels[level], hash[:]...)
	data := t.levels[level]
	if len(data) < TileWidth*tlog.HashSize {
		return full
	}
	index := t.size >> (TileHeight * (level + 1))
	full = append(full, Part{Tile{level, index, TileWidth}, data})
	t.levels[level] = make([]byte, 0, TileWidth*tlog.HashSize)
	return t.push(full, level+1, subtree(data))
}

// subtree returns the root of a complete subtree. The argument `data` has the hashes of the subtree's leaves. The
// number of leaves must be a power of two.
func subtree(data []byte) tlog.Hash {
	if len(data) == tlog.HashSize {
		return tlog.Hash(data)
	}
	half := len(data) / 2
	return tlog.NodeHash(subtree(data[:half]), subtree(data[half:]))
}

// Root returns the root of the tree (RFC 6962, section 2.1).
func (t Tree) Root() tlog.Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	var root tlog.Hash
	first := true
	for _, data := range t.levels {
		// Take the complete subtrees of the tile, from the rightmost and smallest to the leftmost and largest.
		for n := 1; len(data) > 0; n *= 2 {
			if len(data)/tlog.HashSize&n == 0 {
				continue
			}
			start := len(data) - n*tlog.HashSize
			left := subtree(data[start:])
			data = data[:start]
			if first {
				root, first = left, false
			} else {
				root = tlog.NodeHash(left, root)
			}
		}
	}
	return root
}

// Edge returns the partial parts, in the order of EdgeTiles. They share the memory
// of the tree.
func (t Tree) Edge() []Part {
	var parts []Part
	for _, tile := range EdgeTiles(t.size) {
		data := t.bundle
		if tile.Level != Entries {
			data = t.levels[tile.Level]
		}
		parts = append(parts, Part{tile, data})
	}
	return parts
}

// Part returns the data of the given tile, if the edge of the tree has this tile or a wider form of it.
func (t Tree) Part(tile Tile) (data []byte, ok bool) {
	for _, part := range t.Edge() {
		if part.Tile.Level == tile.Level && part.Tile.Index == tile.Index && tile.Width <= part.Tile.Width {
			data, err := tile.Cut(part.Data)
			return data, err == nil
		}
	}
	return nil, false
}

// MarshalBinary returns the tree for a store to keep: its size in 8 bytes, and the
// data of Edge.
func (t Tree) MarshalBinary() ([]byte, error) {
	data := binary.BigEndian.AppendUint64(nil, uint64(t.size))
	for _, part := range t.Edge() {
		data = append(data, part.Data...)
	}
	return data, nil
}

// ErrTree is the cause of every error about a stored tree that is damaged.
var ErrTree = errors.New("malformed tree")

// UnmarshalBinary reads a tree that MarshalBinary returned. It checks that the tile of
// level 0 has the hashes of the entries. The caller must compare Root with the root that
// it knows. UnmarshalBinary returns errors with the cause ErrTree.
func (t *Tree) UnmarshalBinary(data []byte) error {
	if len(data) < 8 {
		return fmt.Errorf("%w: %d bytes", ErrTree, len(data))
	}
	size := binary.BigEndian.Uint64(data)
	if size > uint64(MaxSize) {
		return fmt.Errorf("%w: size %d", ErrTree, size)
	}
	read := Tree{size: int64(size)}
	rest := data[8:]
	for n := read.size; n > 0; n >>= TileHeight {
		end := int(n%TileWidth) * tlog.HashSize
		if end > len(rest) {
			return fmt.Errorf("%w: %d bytes", ErrTree, len(data))
		}
		read.levels = append(read.levels, slices.Clone(rest[:end]))
		rest = rest[end:]
	}
	read.bundle = bytes.Clone(rest)
	entries, err := ParseBundle(rest, int(read.size%TileWidth))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTree, err)
	}
	for i, entry := range entries {
		if hash := tlog.RecordHash(entry); !bytes.Equal(hash[:], read.levels[0][i*tlog.HashSize:][:tlog.HashSize]) {
			return fmt.Errorf("%w: entry %d does not match its tile", ErrTree, i)
		}
	}
	*t = read
	return nil
}

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
	path := tlog.Tile{H: TileHeight, L: t.Level, N: t.Index, W: t.Width}.Path()
	path = strings.Replace(path, "tile/8/", "tile/", 1) // package tlog writes the height, and "data" for the entries
	return strings.Replace(path, "tile/data/", "tile/entries/", 1)
}

// ErrPath is the error for a path that is not the path of a tile.
var ErrPath = errors.New("not the path of a tile")

// ParsePath reads the path of a tile below the log's prefix. It accepts only paths that Path returns, and
// returns ErrPath for all others.
func ParsePath(path string) (Tile, error) {
	of := strings.Replace(path, "tile/entries/", "tile/data/", 1)
	read, err := tlog.ParseTilePath(strings.Replace(of, "tile/", "tile/8/", 1))
	t := Tile{read.L, read.N, read.W}
	if err != nil || t.Level > maxLevel || t.Index > maxIndex || t.Path() != path {
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
