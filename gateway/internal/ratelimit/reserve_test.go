package ratelimit

import (
	"testing"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestAReserveIsThereAfterTheFirstPeriod lets one of two gateways use up what Redis lends, and its own reserve. The
// other gateway has just started. It must not use its reserve in its first period. Afterwards it must admit exactly
// its reserve, and show how much of it is left, although Redis lends nothing.
func TestAReserveIsThereAfterTheFirstPeriod(t *testing.T) {
	url, clock := redistest.Start(t, "--appendonly", "no").URL(), newClock()
	two := func(c *BorrowerConfig) { c.Gateways = 2 }
	busy, quiet := borrowerAt(t, url, clock, two), borrowerAt(t, url, clock, two)
	quiet.clock.start = clock.now()
	bucket := func(cost int64) []Bucket { // Redis lends 140, and each gateway reserves 10
		return []Bucket{{Key: Key{Name: "k"}, Cost: cost, Rates: []limiter.Rate{{Limit: 160, Period: time.Minute}}}}
	}
	useUp := func() {
		t.Helper()
		for n := 0; ; n++ {
			v, err := busy.Take(t.Context(), bucket(1), nil)
			expect.OK(t, err)
			if v.Wait > 0 && n == 150 {
				return
			}
			if v.Wait > 0 || n == 150 {
				t.Fatalf("the busy gateway, request %d: got a wait of %v, want 150 requests admitted", n+1, v.Wait)
			}
		}
	}
	clock.pass(59 * time.Second)
	useUp()
	for _, c := range []struct {
		name  string
		pause time.Duration
		cost  int64
		least time.Duration // shortest and longest wait; both 0: admitted
		most  time.Duration
		left  int64
	}{
		{"before the end of the first period", time.Second - 1, 1, 1, 1, 0},
		{"a cost above the reserve", 1, 11, time.Second, 62 * time.Second, 10},
		{"a cost as high as the reserve", 0, 10, 0, 0, 0},
		{"the reserve is used up", 0, 1, time.Second, 62 * time.Second, 0},
	} {
		clock.pass(c.pause)
		v, err := quiet.Take(t.Context(), bucket(c.cost), nil)
		if err != nil || v.Wait < c.least || v.Wait > c.most || v.States[0].Left != c.left {
			t.Errorf("%s: got %+v, %v; want a wait of %v to %v, and %d left", c.name, v, err, c.least, c.most, c.left)
		}
		states, err := quiet.Peek(t.Context(), bucket(1), nil)
		if err != nil || states[0].Left != c.left {
			t.Errorf("%s: got %+v, %v; want %d left", c.name, states, err, c.left)
		}
	}
	clock.pass(62 * time.Second) // a window, and the rest of the slot in which the reserve was used
	useUp()
	if states, err := quiet.Peek(t.Context(), bucket(1), nil); err != nil || states[0].Left != 10 {
		t.Errorf("a window later: got %+v, %v; want 10 left", states, err)
	}
}

// TestALoanAfterARefusalIsUsed asks for tokens while a refusal of Redis is remembered. A request must wait only if it
// costs more than the loan that came after the refusal.
func TestALoanAfterARefusalIsUsed(t *testing.T) {
	rates := []limiter.Rate{{Limit: 160, Period: time.Minute}, {Limit: 160, Period: time.Minute}}
	refused := refusal{until: second, shortage: shortage{
		{left: 9, period: time.Minute}, {left: 8, period: time.Minute, uses: []int64{30_000_000, 100}},
	}}
	for _, c := range []struct {
		name string
		loan loan
		want time.Duration
		rate int
	}{
		{"no refusal", loan{}, 0, 0},
		{"a refusal", loan{refusal: refused}, 30 * time.Second, 1},
		{"a loan after it", loan{refusal: refused, left: 9, until: 1}, 0, 0},
		{"too small a loan after it", loan{refusal: refused, left: 8, until: 1}, 30 * time.Second, 1},
		{"a loan that has ended", loan{refusal: refused, left: 9}, 30 * time.Second, 1},
	} {
		s, e := &Borrower{}, &entry{rates: rates, loan: c.loan}
		if got, rate := s.loanWait(e, &Bucket{Cost: 9, Rates: rates}, 0); got != c.want || rate != c.rate {
			t.Errorf("%s: got a wait of %v by rate %d, want %v by %d", c.name, got, rate, c.want, c.rate)
		}
	}
}
