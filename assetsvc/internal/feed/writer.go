package feed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors of Writer.Commit.
var (
	// ErrRefused: the document is not at the expected revision; nothing was changed.
	ErrRefused = errors.New("the document is not at the expected revision")
	// ErrNotDone: the change was not made, and will not be.
	ErrNotDone = errors.New("the store did not take the change")
	// ErrUnknown: the change was made or will be, or not.
	ErrUnknown = errors.New("the store did not say whether it took the change")
)

// Options of a Writer; all are needed.
type Options struct {
	Name     string           // random, of this start of this process alone
	Now      func() time.Time // wall clock that positions follow
	MaxBatch int              // changes in a batch at most
	Timeout  time.Duration    // of one operation of the store
	Pause    time.Duration    // before an operation that failed is tried again
	Failed   func(error)      // is told of an operation's first error

	// Batch is called for each batch, with the contexts of its callers. The
	// store is called with the context that it returns, which ends no sooner
	// than ctx; then the function is.
	Batch func(ctx context.Context, callers []context.Context) (context.Context, func())
}

// Writer puts changes into the feed, as many at a time as wait. It is safe for
// concurrent use. A process has one.
type Writer struct {
	store Store
	o     Options
	queue chan *change
	last  int64 // newest position known to be given out
}

// change is a write on its way.
type change struct {
	Write
	ctx  context.Context // of its caller
	done chan error      // gets the outcome, once
}

// NewWriter returns a writer, which commits nothing until it runs.
func NewWriter(store Store, o Options) *Writer {
	return &Writer{store: store, o: o, queue: make(chan *change, o.MaxBatch)}
}

// Commit writes a document if it still has revision (0: if there is none) and
// returns its position, once its batch is closed: readers see it there as soon
// as all batches that were opened before are closed too. When ctx ends
// before the outcome is known it returns ErrUnknown.
func (w *Writer) Commit(ctx context.Context, id string, revision int64, document any) (int64, error) {
	c := &change{Write: Write{ID: id, Revision: revision, Document: document}, ctx: ctx, done: make(chan error, 1)}
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

// Run commits changes until ctx is done. A batch that is then in flight is left
// to be fenced.
func (w *Writer) Run(ctx context.Context) {
	var held []*change // for a later batch
	var written *batch // on the clock still
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
			return // perhaps without positions: nothing must be written
		}
		if written != nil {
			written.acknowledge(ctx) // opening has taken it off the clock
		}
		w.write(during, next)
		end()
		written = next
	}
}

// batch is a Batch with the changes that it is made of.
type batch struct {
	Batch
	changes  []*change
	outcomes []error
}

// callers returns the contexts of those who wait for the batch.
func (b *batch) callers() []context.Context {
	callers := make([]context.Context, len(b.changes))
	for i, c := range b.changes {
		callers[i] = c.ctx
	}
	return callers
}

// acknowledge tells the callers what has become of their changes, unless ctx
// ended before that was certain.
func (b *batch) acknowledge(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for i, c := range b.changes {
		c.done <- b.outcomes[i]
	}
}

// gather returns the changes that wait as a batch, one for a document, and
// those that have to wait for a later one. With wait it waits for a first;
// without, it returns nil when there is none.
func (w *Writer) gather(ctx context.Context, held []*change, wait bool) (*batch, []*change) {
	b, taken := &batch{}, map[string]bool{}
	var rest []*change
	take := func(c *change) {
		switch {
		case c.ctx.Err() != nil: // the caller has gone, and nothing was begun
			c.done <- ErrNotDone
		case taken[c.ID] || len(b.changes) == w.o.MaxBatch:
			rest = append(rest, c)
		default:
			taken[c.ID] = true
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

// open takes positions for b. An open that may yet be applied cannot be walked
// away from, so it returns only when the clock has them, or ctx is done.
func (w *Writer) open(ctx context.Context, b *batch) {
	b.First = w.next()
	w.retry(ctx, func(ctx context.Context) error {
		for {
			now, opened, err := w.store.Open(ctx, w.o.Name, b.Batch)
			if err != nil {
				return wrap("open batch", err)
			}
			w.last = max(w.last, now.Last)
			if opened || now.Open[w.o.Name].First == b.First { // by an earlier copy
				break
			}
			b.First = w.next()
		}
		return nil
	})
	for i, c := range b.changes {
		c.Position = b.First + int64(i)
	}
}

func (w *Writer) next() int64 { return max(w.o.Now().UnixMicro(), w.last+1) }

// write writes the documents of b and finds out what has become of each. It
// returns once nothing of b can land any more, or ctx is done.
func (w *Writer) write(ctx context.Context, b *batch) {
	writes := make([]Write, len(b.changes))
	for i, c := range b.changes {
		writes[i] = c.Write
	}
	b.outcomes = make([]error, len(writes))
	once, cancel := context.WithTimeout(ctx, w.o.Timeout)
	applied, err := w.store.Write(once, writes)
	cancel()
	if err == nil && applied == len(writes) {
		return
	}
	refused := ErrRefused
	if err != nil {
		refused = ErrNotDone
		w.o.Failed(fmt.Errorf("write batch: %w", err))
		w.retry(ctx, func(ctx context.Context) error { return wrap("fence own batch", w.store.Fence(ctx, b.IDs)) })
	}
	w.retry(ctx, func(ctx context.Context) error {
		answers, err := w.store.Landed(ctx, writes)
		for i, answer := range answers {
			b.outcomes[i] = map[Answer]error{Yes: nil, No: refused, Maybe: ErrUnknown}[answer]
		}
		return wrap("look what has landed", err)
	})
}

// retry repeats an operation until it succeeds or ctx is done.
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
		select {
		case <-time.After(w.o.Pause):
		case <-ctx.Done():
		}
	}
}

// wrap says what was being done when err came up, if it did.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
