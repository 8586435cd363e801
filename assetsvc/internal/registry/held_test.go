package registry_test

import (
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/testing/expect"
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
		expect.Equal(t, held().Sub(start), c.want, "with the clock at %v", c.clock)
	}
}
