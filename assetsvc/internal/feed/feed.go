// Package feed puts the changes of any number of asset services into one order.
// A reader who follows that order misses no change. The package needs only atomic
// operations on single documents, which a Store supplies. This comment describes
// the protocol; docs/architecture.md, "Feed protocol", has the reasons.
//
// # Terms
//
//   - A position orders a change in the feed. It is a time in µs since the Unix
//     epoch.
//   - A revision counts the writes of one document. The guard of a write is the
//     revision that the document must have; otherwise the store refuses the write.
//   - A batch is the changes that one writer makes together. Their positions are
//     consecutive. The batch is open from step 1 to step 3 below.
//   - The clock is one document. It has the newest position given out, and the
//     open batch of each writer.
//   - The horizon is the position just before the first open batch. Without an
//     open batch it is the newest position.
//   - A fence raises the revision of each document of a batch, so the guards of
//     that batch fail from then on. A document that does not exist becomes a
//     void, which readers are not shown.
//   - The record of a batch describes each of its changes. Readers see a record
//     that is shown, once the horizon has passed it.
//
// # Steps
//
// A writer repeats three steps:
//
//  1. Open: take positions above the newest one, put the batch into the clock,
//     and store the record of the batch, which is not shown yet. The clock and the
//     record are written at the same time.
//  2. Write: write each document at its position, if its guard holds. Show the
//     record at the same time.
//  3. Close: remove the batch from the clock. If more changes wait, the Open of
//     the next batch replaces this one and saves the operation.
//
// Then it tells the callers the outcomes. If not every write was applied, the
// writer settles the batch before step 3: Settle removes from the record the
// changes that were not applied.
//
// A reader reads the clock first. Then it reads documents with positions up to
// the horizon, or the shown records up to the horizon.
//
// A watcher reads the clock from time to time. It fences a batch that stays open
// longer than the lease, settles it, and then closes it: a writer that stalls or
// dies would hold back the horizon for ever.
//
// # Settle
//
// Nobody settles a batch before its writes can no longer be applied. A change was
// applied if its document has its position, or if another change was made from
// that position. The records tell: a record has, for each change, the position of
// the document that the change was made from, and it is stored before the change
// can be applied.
//
// A batch without a record has applied nothing. Settle gives it an empty record,
// so that a late copy of the record has no effect.
//
// # Invariants
//
//  1. The clock gives out each position once, and positions only rise.
//  2. A writer has at most one open batch.
//  3. A batch is closed only when each of its writes has been applied or can no
//     longer be applied.
//  4. So no write at or below the horizon can still be applied: a reader who has
//     read up to the horizon has missed nothing.
//  5. A caller learns the outcome only after the batch is closed. So readers see
//     the change once all batches that were opened before are closed too.
//  6. A change that begins after another was acknowledged has a higher position.
//  7. A fence undoes no change: the document keeps its contents and its position.
//  8. A change is applied only after its record is stored.
//  9. A batch is closed only when its record is shown and has exactly the changes
//     that were applied. After that the record never changes.
//
// # Unknown outcomes
//
// After an error of the Store, the operation may have been applied, may be
// applied later, or never. Each step copes with that:
//
//  1. Open is repeated unchanged. Once one copy is applied, or the clock has moved
//     past its positions, every later copy fails its guard. The record of an Open
//     that was refused is never shown.
//  2. Write is sent once. After an error the writer fences the batch, so nothing
//     of it can be applied any more. Then it settles the batch.
//  3. Close, Fence and Settle do no harm when they are repeated. Settle removes
//     and never adds, so a late copy brings nothing back.
package feed

import "context"

// Batch is the consecutive positions that a writer took: First for IDs[0],
// First+1 for IDs[1], and so on.
type Batch struct {
	First int64    // µs since the Unix epoch
	IDs   []string // documents that the batch writes, each once
}

// Last returns the highest position of the batch.
func (b Batch) Last() int64 { return b.First + int64(len(b.IDs)) - 1 }

// Clock is the document that orders all changes. The zero Clock has given out no
// position.
type Clock struct {
	Last int64            // newest position given out
	Open map[string]Batch // open batches, by writer
}

// Horizon returns the highest position that readers may read up to: no write at
// or below it can still be applied.
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
	Revision int64 // guard: the stored revision must be this one; 0: no document may exist
	Before   int64 // position of the document at that revision; 0: no document exists
	Position int64 // position of the change
	Document any   // contents, opaque to this package
}

// Store is the operations that the protocol needs. It is safe for concurrent use.
// Each operation is atomic on each document that it touches. Once an operation
// has returned nil, its effect is durable, and every later operation of any
// process sees it. After an error the outcome is unknown: the operation may have
// been applied, may be applied later, or never.
type Store interface {
	// Open sets clock.Last to b.Last() and clock.Open[writer] to b, if clock.Last
	// is below b.First. It returns whether it did so, and the clock afterwards, of
	// which only Last and Open[writer].First must be set. It also stores the record
	// of the writes under writer and b.First, if there is none, and does not show it.
	// It may do both at the same time, and returns nil only if both are done. The record
	// of a batch that was refused is of no use: the store removes it, and Open does not
	// wait for that.
	Open(ctx context.Context, writer string, b Batch, writes []Write) (now Clock, opened bool, err error)
	// Close removes clock.Open[writer] if its First is first. Otherwise it does
	// nothing.
	Close(ctx context.Context, writer string, first int64) error
	// Clock returns the clock. It is the zero Clock before the first Open.
	Clock(ctx context.Context) (Clock, error)
	// Write applies the writes whose guards hold. For each it sets the document and
	// raises its revision by one. It returns the number of writes applied. It also
	// shows the record under writer and b.First, if there is one. It may do both at
	// the same time, and returns nil only if both are done.
	Write(ctx context.Context, writer string, b Batch, writes []Write) (applied int, err error)
	// Fence raises the revision of each document, and creates a void for each id
	// without a document. No guard taken before can hold afterwards.
	Fence(ctx context.Context, ids []string) error
	// Settle makes the record of a batch final, and returns which of its documents
	// the batch has written, by id. It stores an empty record if there is none. It
	// removes the changes that were not applied, and shows the record. No write of
	// the batch may be possible any more.
	Settle(ctx context.Context, writer string, first int64) (landed map[string]bool, err error)
}
