package feed

import (
	"testing"
	"time"
)

// TestAWatcherFencesABatchAfterItsLease lets a watcher look several times at the batches of one writer. It must
// fence a batch only after it has seen this batch for as long as the lease.
func TestAWatcherFencesABatchAfterItsLease(t *testing.T) {
	const fenced = "clock, fence a, settle, close"
	for _, c := range []struct {
		name  string
		looks []time.Duration // times of the looks
		fails int             // number of the look that fails; 0: none fails
		next  int             // the writer opens another batch before the look with this number; 0: it opens none
		want  string          // operations of the last look
	}{
		{"a first look", []time.Duration{0}, 0, 0, "clock"},
		{"just before the lease ends", []time.Duration{0, lease - 1}, 0, 0, "clock"},
		{"when the lease ends", []time.Duration{0, lease}, 0, 0, fenced},
		{"in steps", []time.Duration{time.Hour, time.Hour + lease/2, time.Hour + lease}, 0, 0, fenced},
		{"another batch", []time.Duration{0, lease / 2, lease}, 0, 2, "clock"},
		{"another batch, seen for the first time", []time.Duration{0, lease}, 0, 1, "clock"},
		{"another batch after its own lease", []time.Duration{0, lease / 2, lease / 2 * 3}, 0, 1, fenced},
		{"the store does not answer meanwhile", []time.Duration{0, lease / 2, lease}, 1, 0, "clock"},
		{"it answers again for long enough", []time.Duration{0, 1, lease, 2 * lease}, 1, 0, fenced},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, now := newPlain(), time.Unix(1000, 0)
			w := NewWatcher(s, lease, func() time.Time { return now })
			s.clock = Clock{Last: 5, Open: map[string]Batch{"w": {First: 5, IDs: []string{"a"}}}}
			for i, at := range c.looks {
				now = time.Unix(1000, 0).Add(at)
				if c.next > 0 && i == c.next {
					s.clock = Clock{Last: 6, Open: map[string]Batch{"w": {First: 6, IDs: []string{"a"}}}}
				}
				s.before = nil
				if fails := c.fails > 0 && i == c.fails; fails {
					s.before = once("clock")
				}
				s.told()
				clock, n, err := w.Look(t.Context())
				if fails := s.before != nil; (err != nil) != fails {
					t.Errorf("look %d: got %v, want an error: %t", i, err, fails)
				}
				if closes := len(s.clock.Open) == 0; err == nil && (clock.Last < 5 || (n == 1) != closes) {
					t.Errorf("look %d: got the clock %v and %d fenced, want 1 fenced: %t", i, clock, n, closes)
				}
			}
			if got := s.told(); got != c.want {
				t.Errorf("the last look: got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestAFenceThatFailsIsTriedAgain lets each step of a look fail once. No later step may follow in that look. The next
// look must do all steps again.
func TestAFenceThatFailsIsTriedAgain(t *testing.T) {
	for _, c := range []struct{ fails, first, second string }{
		{"fence", "clock, fence a fails", "clock, fence a, settle, close"},
		{"settle", "clock, fence a, settle fails", "clock, fence a, settle, close"},
		{"close", "clock, fence a, settle, close fails", "clock, fence a, settle, close"},
	} {
		s, now := newPlain(), time.Unix(1000, 0)
		w := NewWatcher(s, lease, func() time.Time { return now })
		s.clock = Clock{Last: 5, Open: map[string]Batch{"w": {First: 5, IDs: []string{"a"}}}}
		if _, _, err := w.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(lease)
		s.before = once(c.fails)
		s.told()
		if _, n, err := w.Look(t.Context()); err == nil || n != 0 || s.told() != c.first {
			t.Errorf("%s: got %d fenced, %v; want an error after %s", c.fails, n, err, c.first)
		}
		if _, n, err := w.Look(t.Context()); err != nil || n != 1 || s.told() != c.second {
			t.Errorf("%s, again: got %d fenced, %v; want 1 by %s", c.fails, n, err, c.second)
		}
	}
}
