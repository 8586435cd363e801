package publiclog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/sleep"
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

	seen    Head      // as the last look has found or left it
	signed  time.Time // when this writer last found or stored another checkpoint
	covered int64     // position up to which the newest checkpoint has all changes
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
	// signings is how often a writer signs anew at once, if the head changes meanwhile.
	signings = 3
)

// Run extends and signs the log until ctx is done. It repeats what failed. It signs whenever
// the newest checkpoint is old enough, also while the record grows faster than it looks. A
// Writer that sees a head of another process rests for a while, so that one process does
// most of the work. Report gets the outcome of each step: a time up to which a checkpoint
// covers all changes, zero if the step has not found one, and the error of a step that
// failed.
func (w *Writer) Run(ctx context.Context, report func(upto time.Time, err error)) {
	for ctx.Err() == nil {
		began := time.Now()
		more, won, err := w.Extend(ctx)
		if err == nil && time.Since(w.signed) >= w.o.Signed {
			err = w.signAgain(ctx)
		}
		if ctx.Err() == nil {
			report(w.uptoTime(began, won && !more && err == nil), err)
		}
		pause := max(w.o.Every, min(rest*time.Since(began), longestPause))
		switch {
		case err != nil:
		case !won:
			pause *= time.Duration(1 + rand.IntN(yields))
		case more:
			continue
		}
		sleep.For(ctx, pause)
	}
}

// uptoTime returns the time up to which the newest checkpoint covers all changes: the
// beginning of a step after which the log had the whole record, if the checkpoint is of that
// log; else the time of the last position that it covers.
func (w *Writer) uptoTime(began time.Time, whole bool) time.Time {
	switch {
	case whole && sizeOf(w.seen) == w.seen.Tree.Size():
		return began
	case w.covered == 0:
		return time.Time{}
	default:
		return time.UnixMicro(w.covered)
	}
}

// signAgain signs the log. It repeats that at once if the head changed meanwhile.
func (w *Writer) signAgain(ctx context.Context) error {
	for range signings {
		if won, err := w.Sign(ctx); won || err != nil {
			return err
		}
	}
	return nil
}

// sizeOf returns the leaves of a head's newest checkpoint.
func sizeOf(head Head) int64 {
	newest, err := translog.Unverified(head.Checkpoint)
	if err != nil {
		return 0
	}
	return newest.Size
}

// look remembers a head. If its checkpoint covers the tree of the head before, that
// checkpoint covers the position of that head.
func (w *Writer) look(head Head) {
	size := sizeOf(head)
	if size >= w.seen.Tree.Size() {
		w.covered = max(w.covered, w.seen.Position)
	}
	if size == head.Tree.Size() {
		w.covered = max(w.covered, head.Position)
	}
	if w.seen.Version > 0 && !bytes.Equal(head.Checkpoint, w.seen.Checkpoint) {
		w.signed = time.Now()
	}
	w.seen = head
}

// Extend adds some changes of the record to the log. More tells that the record has
// further changes that did not fit in this step. Won is false if another process changed the head at the same time, or
// since this Writer last saw it: then Extend does nothing.
func (w *Writer) Extend(ctx context.Context) (more, won bool, err error) {
	head, err := w.store.LogHead(ctx)
	if err != nil {
		return false, false, fmt.Errorf("read the head of the log: %w", err)
	}
	w.look(head)
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
		w.look(head)
	}
	return page.More, won, nil
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
	if signed, err := w.isSigned(head, next); signed || err != nil {
		if err == nil {
			w.look(head)
			w.signed = time.Now()
		}
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
		w.look(head)
	}
	return won, nil
}

// errAhead is returned for a log whose newest checkpoint has more leaves than the log.
var errAhead = errors.New("the newest checkpoint of the log has more leaves than the log")

// isSigned tells whether the newest checkpoint is the next one, signed by all keys. It
// returns errAhead for a checkpoint of this log that the tree does not reach.
func (w *Writer) isSigned(head Head, next translog.Checkpoint) (bool, error) {
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
