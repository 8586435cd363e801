// Package feed puts the changes of any number of asset services into one order. A reader who follows that order
// misses no change. The package needs only atomic operations on single documents, and a Store supplies them. This
// comment describes the protocol; docs/protocol.md, "Feed protocol", gives the reasons.
//
// # Terms
//
//   - A position orders a change in the feed. It is a time in µs since the Unix
//     epoch.
//   - A revision counts the writes of one document. The guard of a write is the
//     revision that the document must have; otherwise the store refuses the write.
//   - A batch has the changes that one writer makes together. Their positions are
//     consecutive. The batch is open from step 1 to step 3 below.
//   - The clock is one document. It has the newest position given out, and the
//     open batch of each writer.
//   - The horizon is the position just before the first open batch. Without an
//     open batch it is the newest position.
//   - A fence raises the revision of each document of a batch, so the guards of
//     that batch fail from then on. A document that does not exist becomes a
//     void, which readers never see.
//   - The record of a batch describes each of its changes. Readers see a record
//     once it is shown and the horizon has passed it.
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
//  3. Close: remove the batch from the clock. If more changes wait, the writer
//     skips this step, because the next Open replaces the batch in the clock.
//
// After that it reports the outcomes to the callers. If a write was not applied, the writer settles the batch
// before step 3: Settle removes from the record each change that was not applied.
//
// A reader reads the clock first. Then it reads documents with positions up to
// the horizon, or the shown records up to the horizon.
//
// A watcher reads the clock from time to time. If a batch stays open longer than the lease, the watcher fences,
// settles and closes it. Otherwise a writer that stalls or dies would hold back the horizon for ever.
//
// # Settle
//
// A batch is settled only when none of its writes can be applied any more. A change was applied if its document has
// its position, or if another change was made from that position. The records show such another change: for each
// change, a record has the previous position of the document. A record is stored before its changes can be applied.
//
// If a batch has no record, none of its changes was applied. Settle gives it an empty record, so that a copy of the
// record that arrives late has no effect.
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
// After an error of the Store, the operation may have been applied already, may be applied later, or may never be
// applied. Each step allows for that:
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

// Batch has the consecutive positions that a writer has taken: First for IDs[0], First+1 for IDs[1], and so on.
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

// Horizon returns the highest position that readers may read. No write at or below it can still be applied.
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
	Revision int64 // guard: the stored document must have this revision; 0: the document must not exist
	Before   int64 // position of the document at that revision; 0: it does not exist
	Position int64 // position of the change
	Document any   // contents; this package does not look into them
}

// Store has the operations that the protocol needs. It is safe for concurrent use. Each operation is atomic on
// each document that it touches. Once an operation has returned nil, its effect is durable, and every later
// operation of any process sees it. After an error the outcome is unknown: the operation may have been applied,
// may be applied later, or may never be applied.
type Store interface {
	// If clock.Last is below b.First, Open sets clock.Last to b.Last(), and clock.Open[writer] to b. Otherwise it
	// refuses the batch. The result `opened` is false if the batch was refused. The first result is the clock after
	// the call; only its fields Last and Open[writer].First must be set. Open also stores the record of the writes,
	// with writer and b.First as its key, unless a record with this key exists. The new record is not shown yet. Open
	// may write the clock and the record at the same time. It returns nil only if both are done. If Open has refused
	// the batch, nobody needs the record: the store removes it, and Open does not wait for that.
	Open(ctx context.Context, writer string, b Batch, writes []Write) (now Clock, opened bool, err error)
	// Close removes clock.Open[writer] if that batch begins at the given position (first). Otherwise it does
	// nothing.
	Close(ctx context.Context, writer string, first int64) error
	// Clock returns the clock. Before the first Open it is the zero Clock. If no batch was open a moment ago, Clock may
	// return the clock of that moment.
	Clock(ctx context.Context) (Clock, error)
	// Write applies the writes whose guards hold. For each of them it sets the document and raises its revision by
	// one. The result `applied` is the number of these writes. Write also shows the record that has writer and b.First
	// as its key, if it exists. Write may do both at the same time, and returns nil only if both are done.
	Write(ctx context.Context, writer string, b Batch, writes []Write) (applied int, err error)
	// Fence raises the revision of each document, and creates a void for each id that has no document. After
	// that, guards with older revisions fail.
	Fence(ctx context.Context, ids []string) error
	// Settle makes the record of a batch final. The result `landed` has the id of each document, and whether the batch
	// has written the document. Settle removes the changes that were not applied, and lets readers see the record. If
	// the record does not exist, Settle stores an empty one. It must be called only when no write of the batch can be
	// applied any more.
	Settle(ctx context.Context, writer string, first int64) (landed map[string]bool, err error)
}
