package assetsvc

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTheLogIsNotBehindByAClock reports times of checkpoints from clocks that are wrong. The age of the oldest change
// without a checkpoint must be that of the process, which nobody sets.
func TestTheLogIsNotBehindByAClock(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, ahead := range []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year} {
		synctest.Test(t, func(t *testing.T) {
			w := logWriter{begun: time.Now()}
			w.cover(time.Time{})
			time.Sleep(time.Hour)
			w.cover(time.Now())
			w.cover(time.Now().Add(ahead).Round(0))
			time.Sleep(time.Minute)
			if got := w.behind(); got != time.Minute {
				t.Errorf("a clock %v ahead: got %v behind, want a minute", ahead, got)
			}
		})
	}
}
