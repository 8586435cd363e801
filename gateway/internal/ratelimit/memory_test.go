package ratelimit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ulule/limiter/v3"

	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestPeekTakesNothing looks at the state of a key between requests, and after its window. Looking must not
// change what is left.
func TestPeekTakesNothing(t *testing.T) {
	clock := newClock()
	t.Run("memory", func(t *testing.T) { testPeek(t, clock, NewMemory(clock.now, 0)) })
	borrower := borrowerAt(t, redistest.Start(t, "--appendonly", "no").URL(), clock, nil)
	t.Run("redis", func(t *testing.T) { testPeek(t, clock, borrower) })
}

func testPeek(t *testing.T, clock *simulated, store Store) {
	rate := limiter.Rate{Limit: 10, Period: time.Second}
	bucket := []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: []limiter.Rate{rate}}}
	left := func(want int64, used bool) {
		t.Helper()
		for range 2 {
			states, err := store.Peek(t.Context(), bucket, nil)
			if err != nil || len(states) != 1 || states[0].Left != want || (states[0].Next > 0) != used {
				t.Errorf("got %+v, %v; want %d left, and a time until more is left: %t", states, err, want, used)
			}
		}
	}
	left(10, false)
	for range 3 {
		if v, err := store.Take(t.Context(), bucket, nil); err != nil || v.Wait > 0 {
			t.Fatalf("got %+v, %v; want the request admitted", v, err)
		}
	}
	left(7, true)
	clock.pass(2 * time.Second)
	left(10, false)
}

// TestOfEqualWaitsTheFirstIsNamed uses up two limits at the same time. The refusal must name the first one.
func TestOfEqualWaitsTheFirstIsNamed(t *testing.T) {
	store := NewMemory(newClock().now, 0)
	rate := limiter.Rate{Limit: 1, Period: time.Second}
	buckets := []Bucket{
		{Key: Key{Name: "key"}, Cost: 1, Rates: []limiter.Rate{rate}},
		{Key: Key{Name: "tenant"}, Cost: 1, Rates: []limiter.Rate{rate}},
	}
	var got []int
	for range 2 {
		v, err := store.Take(t.Context(), buckets, nil)
		expect.OK(t, err)
		if v.Wait > 0 {
			got = append(got, v.Refused)
		}
	}
	expect.NoDiff(t, cmp.Diff([]int{0}, got), "the rates that refuse")
}
