// Package sleep waits for a time, or until a context ends.
package sleep

import (
	"context"
	"time"
)

// For waits for the time d. If d is not positive, it does not wait. When ctx ends, it stops waiting and returns false.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
