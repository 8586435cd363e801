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

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

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

// MaxAhead is the largest lead of the store's clock over a clock that confirms it.
const MaxAhead = time.Second

// Confirmed reports whether two witnesses have come as far as a store's time: the median of a machine and its peers,
// and the newest position, `last`. Then the store's time is right even if it is more than MaxAhead ahead of the
// machine's own. `last` is no witness alone: all writers follow a clock that drifts ahead for its first second, and
// take `last` with it. Peers are none alone: one of them may be on the machine of the store.
func Confirmed(store, own time.Time, peers []time.Time, last int64) bool {
	all := append(slices.Clone(peers), own)
	slices.SortFunc(all, time.Time.Compare)
	return store.Sub(all[len(all)/2]) <= MaxAhead && store.Sub(time.UnixMicro(last)) <= MaxAhead
}

// Place is a place where readers find a document: a position in a list.
type Place struct {
	Position int64
	List     int // which list the document is in; 0: in none, so readers do not see it
}

// Trail has the places of a document, the newest last. Readers need it for a document whose newest place is above
// their horizon: for them, the document stands at its newest place up to the horizon. A trail forgets places that
// no reader needs any more (docs/protocol.md, "Moved assets").
type Trail []Place

// NewTrail returns the trail of a document that does not exist yet.
func NewTrail() Trail { return Trail{{}} }

// Since returns the newest place up to the horizon, and all places after it. It forgets the older places, because
// later readers have this horizon or a higher one. If the horizon is old, it forgets fewer places, which is
// harmless.
func (t Trail) Since(horizon int64) Trail {
	first := 0
	for i, p := range t {
		if p.Position <= horizon {
			first = i
		}
	}
	return t[first:]
}

// Entered returns the position at which the document entered the list that it is in now. It returns 0 if the
// document is in no list. It also returns 0 if the trail has forgotten that position. Then a horizon has passed
// that position, because a trail forgets only positions below a horizon that was read.
func (t Trail) Entered() int64 {
	newest := t[len(t)-1]
	if newest.List == 0 {
		return 0
	}
	at := int64(0)
	for _, p := range slices.Backward(t) {
		if p.List != newest.List {
			return at
		}
		at = p.Position
	}
	return 0
}

// At returns the place that the document has at a horizon. If the trail has forgotten that place, the result
// `known` is false. Then the reader must read the clock again: by now the clock has a higher horizon.
func (t Trail) At(horizon int64) (at Place, known bool) {
	for _, p := range t {
		if p.Position <= horizon {
			at, known = p, true
		}
	}
	return at, known
}

// Watcher fences the batches of writers that have stalled or died. It is not safe for concurrent use. Every
// process has a Watcher, and several of them may fence the same batch at the same time.
type Watcher struct {
	store Store
	lease time.Duration
	now   func() time.Time           // a monotonic clock of this process
	seen  map[sighting]time.Duration // for how long this watcher has seen each batch open
	last  time.Time                  // time of the last look; zero if that look has failed
}

// sighting identifies a batch.
type sighting struct {
	writer string
	first  int64
}

// NewWatcher returns a watcher that allows a batch to stay open for the given lease. The lease begins when this
// watcher first sees the batch. Its time is measured by the given clock (now) of this process, so the wall
// clocks of other machines do not matter. Time counts only between two successive looks that succeed: while the
// store does not answer, the writer cannot go on either.
func NewWatcher(store Store, lease time.Duration, now func() time.Time) *Watcher {
	return &Watcher{store: store, lease: lease, now: now, seen: map[sighting]time.Duration{}}
}

// Look reads the clock once, and fences the batches that have been open for the time of the lease or longer. It
// returns the clock and the number of batches that it has fenced. After an error, the next Look tries again.
func (w *Watcher) Look(ctx context.Context) (clock Clock, fenced int, err error) {
	defer func() {
		if err != nil {
			w.last = time.Time{}
		}
	}()
	clock, err = w.store.Clock(ctx)
	if err != nil {
		return Clock{}, 0, fmt.Errorf("read clock: %w", err)
	}
	now, counts := w.now(), time.Duration(0)
	if !w.last.IsZero() {
		counts = now.Sub(w.last)
	}
	w.last = now
	seen := make(map[sighting]time.Duration, len(clock.Open))
	for writer, b := range clock.Open {
		s := sighting{writer, b.First}
		if open, known := w.seen[s]; known {
			seen[s] = open + counts
		} else {
			seen[s] = 0
		}
	}
	w.seen = seen
	for _, writer := range slices.Sorted(maps.Keys(clock.Open)) {
		b := clock.Open[writer]
		if seen[sighting{writer, b.First}] < w.lease {
			continue
		}
		if err := w.store.Fence(ctx, b.IDs); err != nil {
			return clock, fenced, fmt.Errorf("fence batch of %s: %w", writer, err)
		}
		if _, err := w.store.Settle(ctx, writer, b.First); err != nil {
			return clock, fenced, fmt.Errorf("settle batch of %s: %w", writer, err)
		}
		if err := w.store.Close(ctx, writer, b.First); err != nil {
			return clock, fenced, fmt.Errorf("close batch of %s: %w", writer, err)
		}
		fenced++
	}
	return clock, fenced, nil
}
