package publiclog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/translog"
)

// Reader reads the log up to its newest checkpoint. It is safe for concurrent use.
type Reader struct{ store Store }

// NewReader returns a reader of the log in store.
func NewReader(store Store) *Reader { return &Reader{store} }

// ErrUnsigned is returned while the log has no checkpoint yet. Its cause is registry.ErrNotLogged, because no
// change is covered.
var ErrUnsigned = fmt.Errorf("the log has no checkpoint yet: %w", registry.ErrNotLogged)

// Checkpoint returns the newest signed checkpoint, or ErrUnsigned.
func (r *Reader) Checkpoint(ctx context.Context) ([]byte, error) {
	head, err := r.store.LogHead(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the head of the log: %w", err)
	}
	if head.Checkpoint == nil {
		return nil, ErrUnsigned
	}
	return head.Checkpoint, nil
}

// Part returns the data of a full or partial part. It returns ErrNoPart for a part that the tree does not have.
func (r *Reader) Part(ctx context.Context, tile translog.Tile) ([]byte, error) {
	full, err := r.store.LogPart(ctx, tile.Full())
	if err == nil {
		return tile.Cut(full)
	}
	if !errors.Is(err, ErrNoPart) || tile.IsFull() {
		return nil, err
	}
	head, err := r.store.LogHead(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the head of the log: %w", err)
	}
	if data, there := head.Tree.Part(tile); there {
		return data, nil
	}
	// The part may have become full since the first look.
	if full, err = r.store.LogPart(ctx, tile.Full()); err != nil {
		return nil, err
	}
	return tile.Cut(full)
}

// Parts lets a Reader be used as a translog.Source.
type Parts struct{ *Reader }

// ReadCheckpoint implements translog.Source.
func (p Parts) ReadCheckpoint(ctx context.Context) ([]byte, error) { return p.Checkpoint(ctx) }

// ReadPart implements translog.PartReader.
func (p Parts) ReadPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	data, err := p.Part(ctx, tile)
	if errors.Is(err, ErrNoPart) {
		return nil, fs.ErrNotExist
	}
	return data, err
}

// damage adds the cause registry.ErrDamagedLog to an error that shows damage: parts of the log do not fit together,
// or a part is missing. It returns any other error unchanged.
func damage(err error) error {
	for _, cause := range []error{
		translog.ErrPart, translog.ErrLeaf, translog.ErrTampered, translog.ErrOrder, ErrNoPart, fs.ErrNotExist,
	} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w: %w", registry.ErrDamagedLog, err)
		}
	}
	return err
}

// Prove implements registry.Log. It returns ErrUnsigned, and errors with the causes
// registry.ErrNotLogged, registry.ErrNoLeaf and registry.ErrDamagedLog.
func (r *Reader) Prove(ctx context.Context, position int64) (translog.Proof, []byte, error) {
	checkpoint, err := r.Checkpoint(ctx)
	if err != nil {
		return translog.Proof{}, nil, err
	}
	at, err := translog.Unverified(checkpoint)
	if err != nil {
		return translog.Proof{}, nil, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	index, leaf, err := r.find(ctx, at.Size, position)
	if err != nil {
		return translog.Proof{}, nil, err
	}
	path, err := translog.Include(ctx, at, index, Parts{r})
	if err != nil {
		return translog.Proof{}, nil, fmt.Errorf("prove leaf %d: %w", index, damage(err))
	}
	return translog.Proof{Index: index, Path: path, Checkpoint: checkpoint}, leaf, nil
}

// LeafAt returns the leaf with a position. It returns the same errors as Prove.
func (r *Reader) LeafAt(ctx context.Context, position int64) (leaf translog.Leaf, err error) {
	checkpoint, err := r.Checkpoint(ctx)
	if err != nil {
		return leaf, err
	}
	at, err := translog.Unverified(checkpoint)
	if err != nil {
		return leaf, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	_, entry, err := r.find(ctx, at.Size, position)
	if err != nil {
		return leaf, err
	}
	return translog.ParseLeaf(entry)
}

// Consistent returns the proof that a checkpoint of the log continues an earlier state of the log. The argument
// `older` is the number of leaves in the earlier state (translog.Consistent).
func (r *Reader) Consistent(ctx context.Context, older int64, c translog.Checkpoint) ([]tlog.Hash, error) {
	return translog.Consistent(ctx, older, c, Parts{r})
}

// find searches the first leaves of the log for the leaf with a position. The argument `size` is the number of these
// leaves. Positions rise from leaf to leaf, so find searches by bisection: it reads one bundle in each step. If no
// leaf has the position, find returns an error: registry.ErrNoLeaf if a leaf has a later position,
// registry.ErrNotLogged if no leaf has one.
func (r *Reader) find(ctx context.Context, size, position int64) (index int64, leaf []byte, err error) {
	low, high := int64(0), (size+translog.TileWidth-1)/translog.TileWidth // numbers of bundles
	missing := registry.ErrNotLogged
	for low < high {
		middle := (low + high) / 2
		first := middle * translog.TileWidth
		data, err := r.Part(ctx, translog.BundleOf(first, size))
		if err != nil {
			return 0, nil, fmt.Errorf("read the entries from %d: %w", first, damage(err))
		}
		entries, err := translog.ParseBundle(data, translog.BundleOf(first, size).Width)
		if err != nil {
			return 0, nil, damage(err)
		}
		at, side, err := search(entries, position)
		switch {
		case err != nil:
			return 0, nil, damage(err)
		case side == 0:
			return first + int64(at), entries[at], nil
		case side < 0:
			high, missing = middle, registry.ErrNoLeaf
		default:
			low = middle + 1
		}
	}
	return 0, nil, missing
}

// search returns the index of the entry with the given position. The result `side` is 0 if the entry is found.
// Otherwise `side` says whether the position is before (-1) or after (1) all these entries.
func search(entries [][]byte, position int64) (at, side int, err error) {
	for at, entry := range entries {
		leaf, err := translog.ParseLeaf(entry)
		if err != nil {
			return 0, 0, err
		}
		switch cmp.Compare(position, leaf.Position) {
		case 0:
			return at, 0, nil
		case -1:
			if at == 0 {
				return 0, -1, nil
			}
			return 0, 0, registry.ErrNoLeaf // the position is between two leaves
		}
	}
	return 0, 1, nil
}
