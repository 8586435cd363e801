package registry_test

import (
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

func TestHeldHidesSmallStepsBack(t *testing.T) {
	var clock time.Time
	held := registry.Held(func() time.Time { return clock })
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ clock, want time.Duration }{
		{0, 0},
		{-time.Microsecond, 0},
		{-time.Second, 0},
		{time.Millisecond, time.Millisecond},
		{-time.Second, -time.Second}, // a step back of more than a second is not hidden
		{time.Hour, time.Hour},
		{time.Hour - 500*time.Millisecond, time.Hour},
		{0, 0},
	} {
		clock = start.Add(c.clock)
		if got := held().Sub(start); got != c.want {
			t.Errorf("with the clock at %v: got %v, want %v", c.clock, got, c.want)
		}
	}
}
