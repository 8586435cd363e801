package publiclog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// Errors of a Copier.
var (
	// ErrOtherLog is returned if the source has another log than the copy.
	ErrOtherLog = errors.New("the registry has another log than the copy")
	// ErrAhead is returned by Check for leaves that it cannot compare yet.
	ErrAhead = errors.New("the log has changes that the copy of the assets does not have yet")
)

const (
	copyBundles = 64                    // maximum number of entry bundles of one step
	copyEvery   = 2 * time.Second       // time between two reads of the source's checkpoint
	copyAgain   = 50 * time.Millisecond // time until the next read after ErrAhead
)

// Copier copies a log from a source into a store. Before it stores anything, it verifies the data. Each part must
// belong to the tree of a checkpoint that the source has signed. Each checkpoint must continue the previous one. A
// Copier is not safe for concurrent use.
type Copier struct {
	Store  Store
	Source translog.Source
	// Policy says which checkpoints to trust. Nil: the signatures are not verified.
	Policy translog.Opener
	// Check compares new leaves with the assets before the leaves are stored. The first argument is the position of the
	// last leaf in the copy. The new leaves follow that leaf without a gap. If Check returns ErrAhead, it is called
	// again later with these leaves.
	Check func(after int64, leaves []translog.Leaf) error
}

// Run copies the log until ctx is done. After each attempt to copy new leaves, it calls the function `report` with
// the error of the attempt. If the error is nil, the copy has the newest checkpoint.
func (c *Copier) Run(ctx context.Context, report func(error)) {
	for ctx.Err() == nil {
		err := c.CatchUp(ctx)
		pause := copyEvery
		if errors.Is(err, ErrAhead) {
			pause = copyAgain
		} else if ctx.Err() == nil {
			report(err)
		}
		sleep.For(ctx, pause)
	}
}

// CatchUp copies the log up to the newest checkpoint of the source. It returns no error if the source has no log. An
// error may have the cause ErrOtherLog, ErrAhead, translog.ErrTampered, ErrConsistency, ErrPart, ErrLeaf or ErrOrder.
// It may also have a cause that Policy.Open, Check, the source or the store has given.
func (c *Copier) CatchUp(ctx context.Context) error {
	signed, err := c.Source.ReadCheckpoint(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the checkpoint of the log: %w", err)
	}
	next, err := c.open(signed)
	if err != nil {
		return err
	}
	head, err := c.Store.LogHead(ctx)
	if err != nil {
		return fmt.Errorf("read the copy of the log: %w", err)
	}
	if head.Checkpoint != nil {
		known, err := translog.Unverified(head.Checkpoint)
		if err != nil {
			return err
		}
		if known.Origin != next.Origin {
			return fmt.Errorf("%w: %q, and the copy %q", ErrOtherLog, next.Origin, known.Origin)
		}
	}
	for head.Tree.Size() < next.Size {
		if head, err = c.extend(ctx, head, next); err != nil {
			return err
		}
	}
	if head.Tree.Size() > next.Size || bytes.Equal(head.Checkpoint, signed) {
		return nil // nothing is new, or the server that answered has an old checkpoint
	}
	if root := head.Tree.Root(); root != next.Root {
		return fmt.Errorf("%w: its %d leaves have the root %s, the checkpoint has %s", translog.ErrTampered,
			next.Size, root, next.Root)
	}
	head.Checkpoint = signed
	_, err = c.store(ctx, head, nil)
	return err
}

func (c *Copier) open(signed []byte) (translog.Checkpoint, error) {
	if c.Policy == nil {
		return translog.Unverified(signed)
	}
	opened, err := c.Policy.Open(signed)
	return opened.Checkpoint, err
}

// extend adds some leaves to the copy. Before that, it verifies that the tree of the new checkpoint begins with
// the copied leaves and the added ones.
func (c *Copier) extend(ctx context.Context, head Head, next translog.Checkpoint) (Head, error) {
	var entries [][]byte
	for size := head.Tree.Size(); size < next.Size && len(entries) < copyBundles*translog.TileWidth; {
		bundle, err := c.bundle(ctx, size, next.Size)
		if err != nil {
			return head, err
		}
		entries, size = append(entries, bundle...), size+int64(len(bundle))
	}
	leaves := make([]translog.Leaf, len(entries))
	last := head.Position
	for i, entry := range entries {
		leaf, err := translog.ParseLeaf(entry)
		if err != nil {
			return head, err
		}
		if leaf.Position <= last {
			return head, fmt.Errorf("%w: %d after %d", translog.ErrOrder, leaf.Position, last)
		}
		leaves[i], last = leaf, leaf.Position
	}
	tree, parts, err := head.Tree.Append(entries)
	if err != nil {
		return head, fmt.Errorf("extend the copy of the log: %w", err)
	}
	if err := c.begins(ctx, tree, next); err != nil {
		return head, err
	}
	if err := c.Check(head.Position, leaves); err != nil {
		return head, err
	}
	head.Tree, head.Position = tree, last
	return c.store(ctx, head, parts)
}

// begins returns nil if the tree of the new checkpoint begins with the leaves of the given tree.
func (c *Copier) begins(ctx context.Context, tree translog.Tree, next translog.Checkpoint) error {
	older := translog.Checkpoint{Origin: next.Origin, Size: tree.Size(), Root: tree.Root()}
	if older == next {
		return nil
	}
	if older.Size == next.Size {
		return fmt.Errorf("%w: its %d leaves have the root %s, the checkpoint has %s", translog.ErrTampered,
			next.Size, older.Root, next.Root)
	}
	proof, err := translog.Consistent(ctx, older.Size, next, c.Source)
	if err != nil {
		return fmt.Errorf("read the tree of the log: %w", err)
	}
	return translog.CheckConsistency(older, next, proof)
}

// bundle returns entries of one bundle: from the entry with the given number to the end of the bundle.
func (c *Copier) bundle(ctx context.Context, from, size int64) ([][]byte, error) {
	tile := translog.BundleOf(from, size)
	data, err := c.Source.ReadPart(ctx, tile)
	if errors.Is(err, fs.ErrNotExist) && !tile.IsFull() { // the bundle has become full meanwhile
		if data, err = c.Source.ReadPart(ctx, tile.Full()); err == nil {
			data, err = tile.Cut(data)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the entries of the log from %d: %w", from, err)
	}
	entries, err := translog.ParseBundle(data, tile.Width)
	if err != nil {
		return nil, err
	}
	return entries[from%translog.TileWidth:], nil
}

func (c *Copier) store(ctx context.Context, head Head, parts []translog.Part) (Head, error) {
	stored, err := c.Store.ExtendLog(ctx, head, parts)
	if err == nil && !stored {
		err = errors.New("another process has changed it")
	}
	if err != nil {
		return head, fmt.Errorf("store the copy of the log: %w", err)
	}
	head.Version++
	return head, nil
}
