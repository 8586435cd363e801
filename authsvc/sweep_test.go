package authsvc

import (
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestAClockThatLeapsIsNotTrusted sets the time of day while a clock watches it. The clock must notice large
// changes only.
func TestAClockThatLeapsIsNotTrusted(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		set   time.Duration
		leaps bool
	}{
		"nobody sets it": {0, false}, "a minute": {time.Minute, false},
		"a year ahead": {year, true}, "a year behind": {-year, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			set := time.Duration(0)
			steady := newClock(func() time.Time { return time.Now().Add(set) })
			time.Sleep(sweepEvery)
			set = c.set
			expect.Equal(t, steady.leaps(), c.leaps, "%s: leaps", name)
		})
	}
}
