package publiclog

import (
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

// Options configure a Writer. Keys are required; the zero values of the others work.
type Options struct {
	Keys   []translog.Key // sign checkpoints; their one name is the log's origin
	Every  time.Duration  // between two looks at the record; 0: 200 ms
	Signed time.Duration  // between two checkpoints; 0: 600 ms, so that a change waits less than 1 s
	// Cosign returns the signed checkpoint with the cosignatures of witnesses. An error
	// keeps the checkpoint from being published. Nil: the log has no witnesses.
	Cosign func(ctx context.Context, c translog.Checkpoint, signed []byte) ([]byte, error)
}

func (o Options) withDefaults() Options {
	if o.Every == 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Signed == 0 {
		o.Signed = 600 * time.Millisecond
	}
	return o
}

// Writer extends the log by the changes of the record, and signs it. Any number of
// processes may have one. It is not safe for concurrent use.
type Writer struct {
	record  Record
	store   Store
	o       Options
	upto    int64 // the record has no change after the head and up to here
	version int64 // of the head, as this writer last saw or stored it; 0 at first
}

// NewWriter returns a writer of the log in store.
func NewWriter(record Record, store Store, o Options) *Writer {
	return &Writer{record: record, store: store, o: o.withDefaults()}
}

const (
	// yields is for how many looks a writer leaves the log to the process that was faster.
	yields = 10
	// rest is how much longer than a step the pause after it is, up to longestPause. So a
	// slow store has time for other work.
	rest         = 4
	longestPause = 10 * time.Second
)

// Run extends and signs the log until ctx is done. It repeats what failed. A Writer that
// sees a head of another process rests for a while, so that one process does most of the
// work. Report gets the outcome of each step: whether a checkpoint covers the whole
// record, and the error of a step that failed.
func (w *Writer) Run(ctx context.Context, report func(complete bool, err error)) {
	var signed time.Time
	for ctx.Err() == nil {
		began, complete := time.Now(), false
		more, won, err := w.Extend(ctx)
		if err == nil && won && !more && time.Since(signed) >= w.o.Signed {
			if won, err = w.Sign(ctx); err == nil && won {
				signed, complete = time.Now(), true
			}
		}
		if ctx.Err() == nil {
			report(complete, err)
		}
		pause := max(w.o.Every, min(rest*time.Since(began), longestPause))
		switch {
		case err != nil:
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
// further changes. Won is false if another process changed the head at the same time, or
// since this Writer last saw it: then Extend does nothing.
func (w *Writer) Extend(ctx context.Context) (more, won bool, err error) {
	head, err := w.store.LogHead(ctx)
	if err != nil {
		return false, false, fmt.Errorf("read the head of the log: %w", err)
	}
	known := w.version
	w.version = head.Version
	if known != 0 && known != head.Version {
		return false, false, nil
	}
	page, err := w.record.Changes(ctx, registry.ChangesQuery{
		After: max(head.Position, w.upto), Limit: stepChanges, Bytes: stepBytes,
	})
	if err != nil {
		return false, false, fmt.Errorf("read the record for the log: %w", err)
	}
	if len(page.Changes) == 0 {
		w.upto = page.Upto
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
	if won, err = w.store.ExtendLog(ctx, head, parts); err != nil {
		return false, false, fmt.Errorf("store the log: %w", err)
	}
	if won {
		w.version++
	}
	return page.Upto > head.Position || len(page.Changes) == stepChanges, won, nil
}

// Sign signs the tree in the stored head, if the newest checkpoint is not of it or is
// not signed by all keys. Another origin is another log with the same leaves, so a
// checkpoint of an earlier origin is replaced. Won is false if another process changed
// the head at the same time.
func (w *Writer) Sign(ctx context.Context) (won bool, err error) {
	head, err := w.store.LogHead(ctx)
	if err != nil {
		return false, fmt.Errorf("read the head of the log: %w", err)
	}
	next := translog.Checkpoint{Origin: w.o.Keys[0].Public().Name(), Size: head.Tree.Size(), Root: head.Tree.Root()}
	signed, err := w.signed(head, next)
	if signed || err != nil {
		return err == nil, err
	}
	checkpoint, err := translog.Sign(next, w.o.Keys...)
	if err != nil {
		return false, fmt.Errorf("sign the log: %w", err)
	}
	if w.o.Cosign != nil {
		if checkpoint, err = w.o.Cosign(ctx, next, checkpoint); err != nil {
			return false, fmt.Errorf("ask the witnesses of the log: %w", err)
		}
	}
	head.Checkpoint = checkpoint
	if won, err = w.store.ExtendLog(ctx, head, nil); err != nil {
		return false, fmt.Errorf("store the checkpoint of the log: %w", err)
	}
	if won {
		w.version = head.Version + 1
	}
	return won, nil
}

// errAhead is returned for a log whose newest checkpoint has more leaves than the log.
var errAhead = errors.New("the newest checkpoint of the log has more leaves than the log")

// signed tells whether the newest checkpoint is the next one, signed by all keys. It
// returns errAhead for a checkpoint of this log that the tree does not reach.
func (w *Writer) signed(head Head, next translog.Checkpoint) (bool, error) {
	if head.Checkpoint == nil {
		return next.Size == 0, nil
	}
	for _, key := range w.o.Keys {
		policy, err := translog.LogPolicy(key.Public())
		if err != nil {
			return false, err
		}
		newest, err := policy.Open(head.Checkpoint)
		if err != nil { // another origin, or not signed by this key
			return false, nil
		}
		if newest.Size > next.Size {
			return false, fmt.Errorf("%w: %d and %d", errAhead, newest.Size, next.Size)
		}
		if newest.Checkpoint != next {
			return false, nil
		}
	}
	return true, nil
}
