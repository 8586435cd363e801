package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"asset-registry/shared/sleep"
)

// Errors of Writer.Commit.
var (
	// ErrRefused says that the document does not have the expected revision. Nothing was changed.
	ErrRefused = errors.New("the document does not have the expected revision")
	// ErrNotDone says that the change was not made, and never will be made.
	ErrNotDone = errors.New("the change was not made")
	// ErrUnknown says that the change may have been made, may be made later, or may never be made.
	ErrUnknown = errors.New("the outcome of the change is unknown")
)

// Options configure a Writer. All fields are required.
type Options struct {
	Name     string           // unique for each start of each process
	Now      func() time.Time // the clock that positions follow
	MaxBatch int              // maximum number of changes in a batch
	MaxBytes int              // maximum number of bytes of all changes in a batch; a single change may have more
	Size     func(Write) int  // bytes of a change
	Timeout  time.Duration    // limit of one operation of the store
	Pause    time.Duration    // wait before the writer repeats a failed operation
	Failed   func(error)      // called with the first error of an operation, but not with the errors of its repeats
	Refused  func()           // called for each Open that was refused because another writer was ahead

	// Batch is called for each batch, with the contexts of its callers. Batch returns a context and a function.
	// The writer opens and writes the batch in this context, and then calls the function. The context must not
	// end before ctx.
	Batch func(ctx context.Context, callers []context.Context) (context.Context, func())
}

// Writer puts changes into the feed. Each batch takes all changes that wait, up to Options.MaxBatch and
// Options.MaxBytes. A Writer is safe for concurrent use, and one is enough for a process.
type Writer struct {
	store Store
	o     Options
	queue chan *change
	last  int64 // newest given-out position that this writer knows
	pace  pace  // another writer that was ahead of this one
}

// pace estimates the present position of another writer. The other writer was ahead when an Open of this writer
// was refused. The clock of this writer may be slow. If this writer used its clock alone, its Opens would be
// refused for as long as the other writer goes on. After a refusal, a pace is never the zero value.
type pace struct {
	position int64     // newest position when the Open was refused
	at       time.Time // when the Open was refused, by the monotonic clock
}

// paceLoss makes a pace slower than real time: in paceLoss seconds, a pace falls behind by 1 s. So if positions
// are ahead of all clocks, the lead shrinks by 1 ms a second.
const paceLoss = 1000

// The method `now` returns the position that the other writer has probably reached, or 0 if no Open was refused yet.
func (p pace) now() int64 {
	if p.at.IsZero() {
		return 0
	}
	passed := time.Since(p.at)
	return p.position + (passed - passed/paceLoss).Microseconds()
}

// change is a write that waits for its outcome.
type change struct {
	Write
	ctx  context.Context // the context of the caller of Commit
	done chan error      // gets the outcome, once
}

// NewWriter returns a writer. It commits nothing until Run is called.
func NewWriter(store Store, o Options) *Writer {
	return &Writer{store: store, o: o, queue: make(chan *change, o.MaxBatch)}
}

// Commit makes a write. It assigns the position itself and ignores write.Position. It returns the position once
// the batch is closed. Readers then see the change as soon as all batches that were opened before are closed
// too. If ctx ends before that, Commit returns an error: ErrNotDone for a change that is not in a batch yet,
// and ErrUnknown for any other change.
func (w *Writer) Commit(ctx context.Context, write Write) (int64, error) {
	c := &change{Write: write, ctx: ctx, done: make(chan error, 1)}
	select {
	case w.queue <- c:
	case <-ctx.Done():
		return 0, ErrNotDone
	}
	select {
	case err := <-c.done:
		return c.Position, err
	case <-ctx.Done():
		return 0, ErrUnknown
	}
}

// Run commits changes until ctx is done. It does not close the last batch. The watcher of another process
// fences this batch.
func (w *Writer) Run(ctx context.Context) {
	var held []*change // changes that must wait for a later batch
	var written *batch // the batch that is written, but still open
	for ctx.Err() == nil {
		var next *batch
		next, held = w.gather(ctx, held, written == nil)
		if next == nil {
			if written != nil {
				w.retry(ctx, func(ctx context.Context) error {
					return wrap("close batch", w.store.Close(ctx, w.o.Name, written.First))
				})
				written.acknowledge(ctx)
				written = nil
			}
			continue
		}
		during, end := w.o.Batch(ctx, next.callers())
		w.open(during, next)
		if ctx.Err() != nil {
			return // the batch may have no positions, so it must not be written
		}
		if written != nil {
			written.acknowledge(ctx) // the opening of the next batch has closed this batch
		}
		w.write(during, next)
		end()
		written = next
	}
}

// batch is a Batch together with its changes.
type batch struct {
	Batch
	changes  []*change
	writes   []Write // one for each change, with its position
	outcomes []error // one for each change; nil: it was applied
}

// The method `at` gives the changes consecutive positions. The argument `first` is the position of the first change.
func (b *batch) at(first int64) {
	b.First = first
	b.writes = make([]Write, len(b.changes))
	for i, c := range b.changes {
		c.Position = first + int64(i)
		b.writes[i] = c.Write
	}
}

// callers returns the contexts of the callers that wait for the batch.
func (b *batch) callers() []context.Context {
	callers := make([]context.Context, len(b.changes))
	for i, c := range b.changes {
		callers[i] = c.ctx
	}
	return callers
}

// acknowledge reports the outcomes to the callers. If ctx is done it does nothing, because then the outcomes are
// not certain.
func (b *batch) acknowledge(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for i, c := range b.changes {
		c.done <- b.outcomes[i]
	}
}

// gather takes the held changes and the queued ones. It returns a batch of them, and the rest for a later batch. A
// batch has at most one change of each document. If there is no change, the argument `wait` decides: gather either
// waits for a change, or returns nil as the batch.
func (w *Writer) gather(ctx context.Context, held []*change, wait bool) (*batch, []*change) {
	b, taken := &batch{}, map[string]bool{}
	bytes := 0
	var rest []*change
	take := func(c *change) {
		size := w.o.Size(c.Write)
		full := len(b.changes) == w.o.MaxBatch || len(b.changes) > 0 && bytes+size > w.o.MaxBytes
		switch {
		case c.ctx.Err() != nil: // the caller has stopped waiting
			c.done <- ErrNotDone
		case taken[c.ID] || full:
			rest = append(rest, c)
		default:
			taken[c.ID] = true
			bytes += size
			b.changes, b.IDs = append(b.changes, c), append(b.IDs, c.ID)
		}
	}
	for _, c := range held {
		take(c)
	}
	for len(rest) < w.o.MaxBatch {
		select {
		case c := <-w.queue:
			take(c)
			continue
		default:
		}
		if len(b.changes) > 0 {
			return b, rest
		}
		if !wait {
			return nil, rest
		}
		select {
		case c := <-w.queue:
			take(c)
		case <-ctx.Done():
			return nil, rest
		}
	}
	return b, rest
}

// open takes positions for b. It returns only when the batch is on the clock, or ctx is done. It must not give
// up earlier, because the store may still apply its Open.
func (w *Writer) open(ctx context.Context, b *batch) {
	b.at(w.next())
	w.retry(ctx, func(ctx context.Context) error {
		for {
			now, opened, err := w.store.Open(ctx, w.o.Name, b.Batch, b.writes)
			if err != nil {
				return wrap("open batch", err)
			}
			w.last = max(w.last, now.Last)
			if opened || now.Open[w.o.Name].First == b.First { // an earlier attempt of this Open has succeeded
				return nil
			}
			w.o.Refused()
			w.pace = pace{max(w.pace.now(), now.Last), time.Now()}
			b.at(w.next())
		}
	})
}

// The method `next` returns the first position of a new batch.
func (w *Writer) next() int64 { return max(w.o.Now().UnixMicro(), w.pace.now(), w.last+1) }

// write writes the documents of b, and finds out the outcome of each write. It returns when no write of b can be
// applied any more, or when ctx is done.
func (w *Writer) write(ctx context.Context, b *batch) {
	b.outcomes = make([]error, len(b.writes))
	once, cancel := context.WithTimeout(ctx, w.o.Timeout)
	applied, err := w.store.Write(once, w.o.Name, b.Batch, b.writes)
	cancel()
	if err == nil && applied == len(b.writes) {
		return
	}
	refused := ErrRefused
	if err != nil {
		refused = ErrNotDone
		w.o.Failed(fmt.Errorf("write batch: %w", err))
		w.retry(ctx, func(ctx context.Context) error {
			return wrap("fence own batch", w.store.Fence(ctx, b.IDs))
		})
	}
	w.retry(ctx, func(ctx context.Context) error {
		landed, err := w.store.Settle(ctx, w.o.Name, b.First)
		for i, id := range b.IDs {
			b.outcomes[i] = nil
			if !landed[id] {
				b.outcomes[i] = refused
			}
		}
		return wrap("settle own batch", err)
	})
}

// retry repeats an operation until it succeeds or ctx is done. Each attempt has a timeout.
func (w *Writer) retry(ctx context.Context, operation func(context.Context) error) {
	for failed := false; ctx.Err() == nil; failed = true {
		once, cancel := context.WithTimeout(ctx, w.o.Timeout)
		err := operation(once)
		cancel()
		if err == nil {
			return
		}
		if !failed && ctx.Err() == nil {
			w.o.Failed(err)
		}
		sleep.For(ctx, w.o.Pause)
	}
}

// wrap adds the name of the failed step to err. If err is nil, it returns nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
