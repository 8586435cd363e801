package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

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
