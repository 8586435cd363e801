package feed

import (
	"context"
	"errors"
	"testing"
	"time"
)

// watched is a store with one open batch. It answers err, or fences.
type watched struct {
	Store
	err    error
	fenced int
}

func (w *watched) Clock(context.Context) (Clock, error) {
	return Clock{Last: 2, Open: map[string]Batch{"w": {First: 1, IDs: []string{"a"}}}}, w.err
}

func (w *watched) Fence(context.Context, []string) error { w.fenced++; return nil }

func (w *watched) Settle(context.Context, string, int64) (map[string]bool, error) { return nil, nil }

func (w *watched) Close(context.Context, string, int64) error { return nil }

// TestAnElectionCountsNotAgainstAWriter has looks that fail for longer than the lease. The
// writer must get its whole lease from looks that succeed.
func TestAnElectionCountsNotAgainstAWriter(t *testing.T) {
	const lease, step = 3 * time.Second, 500 * time.Millisecond
	now, store := time.Unix(0, 0), &watched{}
	w := NewWatcher(store, lease, func() time.Time { return now })
	away := errors.New("no primary")
	look := func(answers error) {
		now = now.Add(step)
		store.err = answers
		if _, _, err := w.Look(t.Context()); !errors.Is(err, answers) {
			t.Fatalf("look: got %v, want %v", err, answers)
		}
	}
	look(nil)
	look(nil) // 1 step counts
	for range 20 {
		look(away)
	}
	for counted := 1; counted < 6; counted++ {
		look(nil)
		if store.fenced > 0 {
			t.Fatalf("got a fence after %d steps of looks that succeeded, want none before 6", counted)
		}
	}
	look(nil)
	if store.fenced != 1 {
		t.Errorf("got %d fences after a lease of looks that succeeded, want 1", store.fenced)
	}
}
