package registry

import (
	"sync"
	"time"
)

// maxHeld is the largest step back of a clock that Held hides.
const maxHeld = time.Second

// Held returns a clock that shows the same time as the given clock, but without its small steps back: while the
// given clock is up to a second behind the latest time that the new clock has returned, the new clock returns
// that latest time again. So a time that is read before a write is never after a position that is read during the
// write. A larger step back shows that the given clock was wrong before, so the new clock follows it. The new
// clock is safe for concurrent use if the given clock is.
func Held(now func() time.Time) func() time.Time {
	var mu sync.Mutex
	var latest time.Time
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		t := now()
		if back := latest.Sub(t); back <= 0 || back > maxHeld {
			latest = t
		}
		return latest
	}
}
