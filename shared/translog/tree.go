package translog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

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
