package translog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/mod/sumdb/tlog"
)

// Source is a log to verify.
type Source interface {
	PartReader
	// ReadCheckpoint returns the newest signed checkpoint, at most MaxCheckpoint
	// bytes.
	ReadCheckpoint(ctx context.Context) ([]byte, error)
}

// Verifier verifies whole logs of the registry. It needs memory for a few entry
// bundles, whatever the size of the log.
type Verifier struct {
	// Policy says which checkpoints to trust.
	Policy *Policy
	// Remembered is an older checkpoint of the log, which the log must continue. The zero value stands for no older
	// checkpoint.
	Remembered Checkpoint
	// Leaf is called for each leaf in order, unless the field Leaf is nil. Leaves may be wrong until Verify has
	// returned nil. If Leaf returns an error, the verification ends.
	Leaf func(index int64, leaf Leaf) error
	// Ahead is the number of entry bundles that are read at the same time; 0 means 1.
	Ahead int
}

// The causes of errors about a log whose parts do not fit its checkpoint.
var (
	ErrTampered = errors.New("the log was tampered with")
	ErrOrder    = errors.New("the leaves are not in the order of their positions")
)

// Verify verifies a whole log. The newest checkpoint must have valid signatures and the quorum, and must continue the
// remembered checkpoint. The entries must be leaves in the order of their positions. All tiles and the root must follow
// from these leaves. Verify returns the checkpoint. Its errors have the causes of Policy.Open, ErrConsistency,
// ErrTampered, ErrPart, ErrLeaf or ErrOrder, or the causes of the source's errors.
func (v Verifier) Verify(ctx context.Context, source Source) (Signed, error) {
	raw, err := source.ReadCheckpoint(ctx)
	if err != nil {
		return Signed{}, err
	}
	signed, err := v.Policy.Open(raw)
	if err != nil {
		return signed, err
	}
	if old := v.Remembered; old != (Checkpoint{}) && (old.Origin != signed.Origin || old.Size > signed.Size) {
		return signed, fmt.Errorf("%w: %q of size %d, before %q of size %d", ErrConsistency,
			signed.Origin, signed.Size, old.Origin, old.Size)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	walk := walk{Verifier: v, source: source}
	for bundle := range walk.read(ctx, signed.Size) {
		if err := walk.add(ctx, <-bundle); err != nil {
			return signed, err
		}
	}
	if err := ctx.Err(); err != nil {
		return signed, err
	}
	for _, part := range walk.tree.Edge() {
		if err := walk.compare(ctx, part); err != nil {
			return signed, err
		}
	}
	if root := walk.tree.Root(); walk.tree.Size() != signed.Size || root != signed.Root {
		return signed, fmt.Errorf("%w: its %d leaves have the root %s, the checkpoint has %s", ErrTampered,
			walk.tree.Size(), root, signed.Root)
	}
	return signed, walk.remembered()
}

// walk is one verification under way.
type walk struct {
	Verifier
	source   Source
	tree     Tree
	position int64 // position of the last leaf
}

// bundle is an entry bundle as it was read, with the tile of its hashes.
type bundle struct {
	tile           Tile
	entries, tile0 []byte
	err            error
}

// read reads the bundles of a log in order. It reads at most `Ahead` bundles at the same time. It stops when ctx ends.
func (w *walk) read(ctx context.Context, size int64) <-chan chan bundle {
	queue := make(chan chan bundle, max(w.Ahead, 1)-1)
	go func() {
		defer close(queue)
		for first := int64(0); first < size; first += TileWidth {
			tile := BundleOf(first, size)
			result := make(chan bundle, 1)
			select {
			case queue <- result:
			case <-ctx.Done():
				return
			}
			go func() { result <- w.readBundle(ctx, tile) }()
		}
	}()
	return queue
}

func (w *walk) readBundle(ctx context.Context, tile Tile) bundle {
	entries, err := readPart(ctx, w.source, tile)
	if err != nil {
		return bundle{err: err}
	}
	tile0, err := readPart(ctx, w.source, Tile{0, tile.Index, tile.Width})
	return bundle{tile, entries, tile0, err}
}

// add checks the leaves of the next bundle and appends them to the tree.
func (w *walk) add(ctx context.Context, b bundle) error {
	if b.err != nil {
		return b.err
	}
	entries, err := ParseBundle(b.entries, b.tile.Width)
	if err != nil {
		return fmt.Errorf("%s: %w", b.tile.Path(), err)
	}
	for i, entry := range entries {
		if hash := tlog.RecordHash(entry); !bytes.Equal(hash[:], b.tile0[i*tlog.HashSize:][:tlog.HashSize]) {
			return fmt.Errorf("%w: entry %d of %s does not match the tile of level 0", ErrTampered, i, b.tile.Path())
		}
		if err := w.check(w.tree.Size()+int64(i), entry); err != nil {
			return err
		}
	}
	// The log of the remembered checkpoint may end within this bundle. Then compare its root.
	if rest := w.Remembered.Size - w.tree.Size(); rest > 0 && rest <= int64(len(entries)) {
		older, _, err := w.tree.Append(entries[:rest])
		if err != nil {
			return err
		}
		if root := older.Root(); root != w.Remembered.Root {
			return fmt.Errorf("%w: at size %d its root was %s and is %s", ErrConsistency, w.Remembered.Size,
				w.Remembered.Root, root)
		}
	}
	tree, full, err := w.tree.Append(entries)
	if err != nil {
		return err
	}
	w.tree = tree
	for _, part := range full {
		if part.Tile.Level > 0 { // entries and tiles of level 0 were compared above
			if err := w.compare(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// check checks one leaf, and calls the function Leaf with it.
func (w *walk) check(index int64, entry []byte) error {
	leaf, err := ParseLeaf(entry)
	if err != nil {
		return fmt.Errorf("leaf %d: %w", index, err)
	}
	if leaf.Position <= w.position {
		return fmt.Errorf("%w: leaf %d has position %d after %d", ErrOrder, index, leaf.Position, w.position)
	}
	w.position = leaf.Position
	if w.Leaf == nil {
		return nil
	}
	return w.Leaf(index, leaf)
}

// compare reads a part of the log. The argument `part` is the same part, computed from the leaves. The two must be
// equal.
func (w *walk) compare(ctx context.Context, part Part) error {
	data, err := readPart(ctx, w.source, part.Tile)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, part.Data) {
		return fmt.Errorf("%w: %s does not match the leaves", ErrTampered, part.Tile.Path())
	}
	return nil
}

// remembered checks a remembered checkpoint of the empty log.
func (w *walk) remembered() error {
	if old := w.Remembered; old.Origin != "" && old.Size == 0 && old.Root != (Tree{}).Root() {
		return fmt.Errorf("%w: the remembered empty log has a root", ErrConsistency)
	}
	return nil
}

// readPart reads a part of the log. If the log does not have a partial part, readPart reads the full part, and cuts the
// partial one from it. It returns an error if a tile has the wrong length.
func readPart(ctx context.Context, parts PartReader, tile Tile) ([]byte, error) {
	data, err := parts.ReadPart(ctx, tile)
	read := tile
	if errors.Is(err, fs.ErrNotExist) && !tile.IsFull() {
		read = tile.Full()
		data, err = parts.ReadPart(ctx, read)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tile.Path(), err)
	}
	if want := read.Width * tlog.HashSize; read.Level != Entries && len(data) != want {
		return nil, fmt.Errorf("%w: %s has %d bytes, want %d", ErrPart, read.Path(), len(data), want)
	}
	if read == tile {
		return data, nil
	}
	return tile.Cut(data)
}
