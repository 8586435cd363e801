package publiclog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// The limits of one step.
const (
	stepChanges = 2000     // maximum number of changes that one step reads
	stepBytes   = 16 << 20 // maximum number of bytes of the changes that one step reads
)

// Options configure a Writer. Keys are required; all other fields may be zero.
type Options struct {
	Keys   []translog.Key // keys that sign checkpoints; they have the same name, which is the log's origin
	Every  time.Duration  // time between two steps, which read the record; 0: 75 ms
	Signed time.Duration  // time between two checkpoints; 0: 600 ms, so that a change waits less than 1 s
	// Cosign returns the signed checkpoint with the cosignatures of witnesses. If it returns an error, the
	// checkpoint is not published. Nil: the log has no witnesses.
	Cosign func(ctx context.Context, c translog.Checkpoint, signed []byte) ([]byte, error)
}

func (o Options) withDefaults() Options {
	// A reading may be registry.Recently old, too: a change is seen within 200 ms.
	o.Every = cmp.Or(o.Every, 75*time.Millisecond)
	o.Signed = cmp.Or(o.Signed, 600*time.Millisecond)
	return o
}

// Writer adds the changes of the record to the log, and signs the log. Several processes may each have a Writer
// of the same log. A Writer is not safe for concurrent use.
type Writer struct {
	record  Record
	store   Store
	o       Options
	idle    bool  // the last step found nothing new in the record
	upto    int64 // the record has no change between the position of the head and this position
	version int64 // version of the head that this writer saw or stored last; 0 at first

	seen    Head      // the head at the last call of the method `look`
	signed  time.Time // when this writer last found or stored a new checkpoint
	covered int64     // the newest checkpoint has all changes up to this position
}

// NewWriter returns a writer of the log in store.
func NewWriter(record Record, store Store, o Options) *Writer {
	return &Writer{record: record, store: store, o: o.withDefaults()}
}

const (
	// yields is the maximum number of pauses for which a writer waits if another process was faster. The number is
	// random.
	yields = 25
	// rest is the length of the pause after a step, as a multiple of the step's length. The pause is at most
	// longestPause. Without these pauses, a slow store would have no time for other work.
	rest         = 4
	longestPause = 10 * time.Second
	// reviews is the time between two looks at a checkpoint of the whole log, as a multiple of Options.Signed. Another
	// process with other keys may have replaced it.
	reviews = 10
	// signings is the maximum number of attempts of one step to sign. An attempt fails if the head changes meanwhile.
	signings = 3
)

// Run extends and signs the log until ctx is done. It repeats a step that has failed. It signs whenever the
// newest checkpoint is old enough, even while the record grows faster than the log. A Writer that sees a head of
// another process waits longer, so that one process does most of the work. After each step Run calls the
// function `report`. The arguments are the error of the step, and a time up to which a checkpoint covers all
// changes. This time is zero if it is not known.
func (w *Writer) Run(ctx context.Context, report func(upto time.Time, err error)) {
	for ctx.Err() == nil {
		began := time.Now()
		more, won, err := w.Extend(ctx)
		due := w.o.Signed
		if sizeOf(w.seen) == w.seen.Tree.Size() {
			due *= reviews
		}
		if err == nil && time.Since(w.signed) >= due {
			err = w.signAgain(ctx)
		}
		if ctx.Err() == nil {
			report(w.uptoTime(began.Add(-registry.Recently), won && !more && err == nil), err)
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

// uptoTime returns a time up to which the newest checkpoint covers all changes. The argument `began` is a time at or
// before the reading of the horizon in a step. The argument `whole` says whether the log has all changes of the record
// at that time. If it has, and the checkpoint covers the whole log, the result is `began`. Otherwise it is the time
// of the last position that the checkpoint is known to cover, or the zero time.
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

// signAgain signs the log. If the head changes meanwhile, it tries again immediately.
func (w *Writer) signAgain(ctx context.Context) error {
	for range signings {
		if won, err := w.Sign(ctx); won || err != nil {
			return err
		}
	}
	return nil
}

// sizeOf returns the number of leaves in the newest checkpoint of a head.
func sizeOf(head Head) int64 {
	newest, err := translog.Unverified(head.Checkpoint)
	if err != nil {
		return 0
	}
	return newest.Size
}

// look remembers a head, and the newest position that its checkpoint covers. If the checkpoint covers the tree
// of the previous head, it covers all changes up to the previous head's position.
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

// Extend adds some changes of the record to the log. The result `more` is true if the record has further changes,
// which did not fit in this step. The result `won` is false if another process has changed the head at the same
// time, or since this Writer last saw the head. Then Extend does nothing. While the record has nothing new, Extend
// does not read the head.
func (w *Writer) Extend(ctx context.Context) (more, won bool, err error) {
	if w.idle {
		if page, err := w.changes(ctx, 1); err != nil || len(page.Changes) == 0 {
			return false, err == nil, err
		}
	}
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
	page, err := w.changes(ctx, stepChanges)
	if err != nil || len(page.Changes) == 0 {
		return false, err == nil, err
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

// changes reads changes that the log does not have yet.
func (w *Writer) changes(ctx context.Context, limit int) (registry.ChangesPage, error) {
	page, err := w.record.Changes(ctx, registry.ChangesQuery{
		After: max(w.seen.Position, w.upto), Limit: limit, Bytes: stepBytes, Recent: true,
	})
	if err != nil {
		return page, fmt.Errorf("read the record for the log: %w", err)
	}
	if w.idle = len(page.Changes) == 0; w.idle {
		w.upto = page.Upto
	}
	return page, nil
}

// Sign signs the tree in the stored head, unless the newest checkpoint is of that tree and signed by all keys.
// It also replaces a checkpoint with an earlier origin, because such a checkpoint belongs to another log with
// the same leaves. The result `won` is false if another process has changed the head at the same time.
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

// errAhead is returned for a log with fewer leaves than its newest checkpoint.
var errAhead = errors.New("the newest checkpoint of the log has more leaves than the log")

// isSigned reports whether the newest checkpoint equals the given one (next) and is signed by all keys. It returns
// errAhead if the newest checkpoint is of this log and has more leaves than the given one.
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
		if err != nil { // the checkpoint has another origin, or no signature of this key
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
