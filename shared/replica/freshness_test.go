package replica

import (
	"net/http"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestACopyIsAsFreshAsTheLastEndThatItReached(t *testing.T) {
	begin := time.Now().Add(-time.Hour)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	var f Freshness
	f.Restart(begin)
	for _, c := range []struct {
		name string
		do   func()
		want time.Time
	}{
		{"a new copy", func() {}, begin},
		{"an end that it has not reached", func() { f.Saw(Seen{10, at(1)}) }, begin},
		{"a position before it", func() { f.Reached(9) }, begin},
		{"the end", func() { f.Reached(10) }, at(1)},
		{"a later look at the same end", func() { f.Saw(Seen{10, at(2)}) }, at(2)},
		{"two ends of which it reaches one", func() { f.Saw(Seen{20, at(3)}); f.Saw(Seen{30, at(4)}); f.Reached(25) }, at(3)},
		{"an older position", func() { f.Reached(5) }, at(3)},
		{"an older answer of a mirror", func() { f.Reached(30); f.Saw(Seen{30, at(1)}) }, at(4)},
		{"an empty feed", func() { f.Saw(Seen{0, at(5)}) }, at(5)},
	} {
		c.do()
		expect.ErrorIf(t, !f.equal.Equal(c.want), "after %s: got %v, want %v", c.name, f.equal, c.want)
	}
	for i := range 2 * mostGoals {
		f.Saw(Seen{int64(100 + i), at(6)})
	}
	expect.Equal(t, len(f.goals), mostGoals, "ends that are remembered")
}

func TestAnAgeIsRoundedUp(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "0": time.Second, "7": 8 * time.Second, "x": 0, "-1": 0} {
		expect.Equal(t, ageOf(http.Header{"Age": {value}}), want, "Age %q", value)
	}
}
