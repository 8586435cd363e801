package registry

import (
	"sync"
	"time"
)

// maxHeld is the largest step back of a clock that Held hides.
const maxHeld = time.Second

// Held returns the clock now without its small steps back: while now is up to a second before the
// latest time that it returned, the result is that time again. So a time that is read before a
// write is not after a position that is read during it. A larger step back shows that the clock
// was wrong, and is followed. The result is safe for concurrent use if now is.
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
