package registry

import (
	"sync"
	"time"
)

// maxHeld is the largest step back of a clock that Held hides.
const maxHeld = time.Second

// Held returns a new clock that follows the given clock, but hides its small steps back. While the given clock is up
// to a second behind the latest time that the new clock has returned, the new clock returns this latest time again.
// So a time that is read before a write is never after a position that is read during the write. If the given
// clock steps back further, it was wrong before, and the new clock follows the step. The new clock is safe for
// concurrent use if the given clock is.
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
