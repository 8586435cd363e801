package publiclog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/translog"
)

// Limits of one step.
const (
	stepChanges = 2000     // changes that one step reads
	stepBytes   = 16 << 20 // bytes of them
)

// Options configure a Writer. Key is required; the zero values of the others work.
type Options struct {
	Key    translog.Key  // signs checkpoints; its name is the log's origin
	Every  time.Duration // between two looks at the record; 0: 200 ms
	Signed time.Duration // between two checkpoints; 0: 1 s
	Failed func(error)   // gets the errors of steps, which are repeated; nil: nobody
	// Cosign returns the checkpoint with the cosignatures of witnesses. An error keeps
	// the checkpoint from being published. Nil: the log has no witnesses.
	Cosign func(ctx context.Context, checkpoint []byte) ([]byte, error)
}

func (o Options) withDefaults() Options {
	if o.Every == 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Signed == 0 {
		o.Signed = time.Second
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	return o
}

// Writer extends the log by the changes of the record, and signs it. Any number of
// processes may have one. It is not safe for concurrent use.
type Writer struct {
	record Record
	store  Store
	o      Options
}

// NewWriter returns a writer of the log in store.
func NewWriter(record Record, store Store, o Options) *Writer {
	return &Writer{record: record, store: store, o: o.withDefaults()}
}

// yields is for how many looks a writer leaves the log to the process that was faster.
const yields = 10

// Run extends and signs the log until ctx is done. A Writer whose head was replaced by
// another process rests for a while, so that one of them does most of the work.
func (w *Writer) Run(ctx context.Context) {
	var signed time.Time
	for ctx.Err() == nil {
		pause := w.o.Every
		more, won, err := w.Extend(ctx)
		if err == nil && won && !more && time.Since(signed) >= w.o.Signed {
			if won, err = w.Sign(ctx); err == nil && won {
				signed = time.Now()
			}
		}
		switch {
		case err != nil && ctx.Err() == nil:
			w.o.Failed(err)
		case !won:
			pause *= time.Duration(1 + rand.IntN(yields))
		case more:
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// Extend adds some changes of the record to the log. More tells that the record has
// further changes. Won is false if another process extended the log at the same time.
func (w *Writer) Extend(ctx context.Context) (more, won bool, err error) {
	head, err := w.store.LogHead(ctx)
	if err != nil {
		return false, false, fmt.Errorf("read the head of the log: %w", err)
	}
	page, err := w.record.Changes(ctx, registry.ChangesQuery{
		After: head.Position, Limit: stepChanges, Bytes: stepBytes,
	})
	if err != nil {
		return false, false, fmt.Errorf("read the record for the log: %w", err)
	}
	if len(page.Changes) == 0 {
		return false, true, nil
	}
	var leaves [][]byte
	for _, change := range page.Changes {
		leaf, _, public, err := change.Leaf()
		if err != nil {
			return false, false, err
		}
		if public {
			leaves = append(leaves, leaf.Encode())
		}
	}
	tree, parts, err := head.Tree.Append(leaves)
	if err != nil {
		return false, false, fmt.Errorf("extend the log: %w", err)
	}
	head.Tree, head.Position = tree, page.Changes[len(page.Changes)-1].Position
	won, err = w.store.ExtendLog(ctx, head, parts)
	if err != nil {
		return false, false, fmt.Errorf("store the log: %w", err)
	}
	return page.Upto > head.Position || len(page.Changes) == stepChanges, won, nil
}

// Sign signs the tree in the stored head, if the newest checkpoint is of an earlier one.
// Won is false if another process changed the head at the same time.
func (w *Writer) Sign(ctx context.Context) (won bool, err error) {
	head, err := w.store.LogHead(ctx)
	if err != nil {
		return false, fmt.Errorf("read the head of the log: %w", err)
	}
	next := translog.Checkpoint{Origin: w.o.Key.Public().Name(), Size: head.Tree.Size(), Root: head.Tree.Root()}
	if head.Checkpoint == nil && next.Size == 0 || head.signs(next) {
		return true, nil
	}
	checkpoint, err := translog.Sign(next, w.o.Key)
	if err != nil {
		return false, fmt.Errorf("sign the log: %w", err)
	}
	if w.o.Cosign != nil {
		if checkpoint, err = w.o.Cosign(ctx, checkpoint); err != nil {
			return false, fmt.Errorf("ask the witnesses of the log: %w", err)
		}
	}
	head.Checkpoint = checkpoint
	if won, err = w.store.ExtendLog(ctx, head, nil); err != nil {
		return false, fmt.Errorf("store the checkpoint of the log: %w", err)
	}
	return won, nil
}

// signs tells whether the newest checkpoint is the given one.
func (h Head) signs(c translog.Checkpoint) bool {
	return bytes.HasPrefix(h.Checkpoint, []byte(c.Text()+"\n"))
}

// errOrigin is returned for a log whose newest checkpoint another key has signed.
var errOrigin = errors.New("the log has another origin than its key")

// Check returns an error if the stored log cannot be continued under the key: its newest
// checkpoint has another origin or was not signed by the key.
func (w *Writer) Check(ctx context.Context) error {
	head, err := w.store.LogHead(ctx)
	if err != nil || head.Checkpoint == nil {
		return err
	}
	policy, err := translog.LogPolicy(w.o.Key.Public())
	if err != nil {
		return err
	}
	signed, err := policy.Open(head.Checkpoint)
	if err != nil {
		return fmt.Errorf("%w: %w", errOrigin, err)
	}
	if signed.Size > head.Tree.Size() {
		return fmt.Errorf("the newest checkpoint has %d leaves, but the log has %d", signed.Size, head.Tree.Size())
	}
	return nil
}
