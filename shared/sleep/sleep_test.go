package sleep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	for _, c := range []struct {
		name    string
		stop    time.Duration // when the context ends
		d, want time.Duration
		whole   bool
	}{
		{"the time passes", time.Hour, time.Minute, time.Minute, true},
		{"the context ends first", time.Second, time.Minute, time.Second, false},
		{"no time", time.Second, 0, 0, true},
		{"less than no time", time.Second, -time.Second, 0, true},
		{"no time, of an ended context", 0, 0, 0, false},
		{"an ended context", 0, time.Minute, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.stop)
				defer cancel()
				begun := time.Now()
				got := For(ctx, c.d)
				if took := time.Since(begun); got != c.whole || took != c.want {
					t.Errorf("got %t after %v, want %t after %v", got, took, c.whole, c.want)
				}
			})
		})
	}
}
