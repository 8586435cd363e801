// Package feed is the protocol by which any number of asset services put their
// changes into one order, so that a reader who follows that order never misses
// a change. It needs only operations on single documents; a store supplies
// them (Store), and the tests run it on a simulated one.
//
// The order lives in one document, the clock: the newest position given out,
// and for each writer the batch it has in flight. A batch goes through three
// steps: open (take positions from the clock, and tell it so), write (the
// documents, each guarded by its revision), close (take the batch off the
// clock; the next open does so on the way). A reader reads the clock first and
// goes no further than the horizon, just before the first batch in flight: up
// to there, all that will ever be is there.
//
// A writer that stalls holds the horizon back. Whoever sees the same batch for
// longer than the lease fences it: makes every write of it that has not landed
// fail for good, and then takes it off the clock.
//
// An error of the Store means that nobody knows whether the operation was, or
// will yet be, applied. So every step is either repeated in a form that a late
// duplicate cannot harm, or fenced and looked at before it is acted on:
//
//   - Open is repeated word for word: of two copies the second fails its guard.
//   - Write is not repeated. After an error the batch is fenced, so that nothing
//     of it can land any more, and then the trails tell what has.
//   - Close and Fence may be repeated as they are.
package feed

import "context"

// Batch is a run of positions that a writer took: First for IDs[0], First+1
// for IDs[1], and so on.
type Batch struct {
	First int64    // µs since the Unix epoch
	IDs   []string // of the documents that it writes, each once
}

// Last returns the batch's highest position.
func (b Batch) Last() int64 { return b.First + int64(len(b.IDs)) - 1 }

// Clock is the document that orders all changes.
type Clock struct {
	Last int64            // newest position given out
	Open map[string]Batch // batches in flight, by writer
}

// Horizon returns the position up to which nothing can appear any more.
func (c Clock) Horizon() int64 {
	horizon := c.Last
	for _, b := range c.Open {
		horizon = min(horizon, b.First-1)
	}
	return horizon
}

// Write is one document of a batch.
type Write struct {
	ID       string
	Revision int64 // that the stored document must have; 0: there must be none
	Position int64 // that it gets
	Document any   // what the store makes of it is the store's business
}

// Answer is what can be said of a write that was not acknowledged.
type Answer int

// The answers.
const (
	No Answer = iota
	Yes
	Maybe
)

// Store is what the protocol needs of a store. Each operation is atomic on each
// document that it touches; once it has returned nil its effect is durable and
// seen by every operation that begins later, of any process.
type Store interface {
	// Open sets clock.Last to b.Last() and clock.Open[writer] to b if
	// clock.Last is below b.First. It returns whether it did, and the clock as
	// it is afterwards, of which Last and Open[writer].First are enough.
	Open(ctx context.Context, writer string, b Batch) (now Clock, opened bool, err error)
	// Close takes clock.Open[writer] off if its First is first.
	Close(ctx context.Context, writer string, first int64) error
	// Clock returns the clock; the zero Clock when nothing was ever opened.
	Clock(ctx context.Context) (Clock, error)
	// Write applies those of writes whose guard holds: it sets the document,
	// raises its revision by one and adds the position to its trail. It returns
	// how many it has applied.
	Write(ctx context.Context, writes []Write) (applied int, err error)
	// Landed tells for each of writes whether it was applied, by its document's
	// trail; Maybe when the trail does not go back that far.
	Landed(ctx context.Context, writes []Write) ([]Answer, error)
	// Fence raises the revision of each document, and makes a void, which no
	// reader is shown, of each that does not exist, so that guards taken before
	// can hold no more.
	Fence(ctx context.Context, ids []string) error
}
