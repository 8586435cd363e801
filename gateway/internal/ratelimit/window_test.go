package ratelimit

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"pgregory.net/rapid"

	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// simulated is a clock that a test sets.
type simulated struct{ nanos atomic.Int64 }

func (s *simulated) now() time.Time { return time.Unix(0, s.nanos.Load()) }

func (s *simulated) pass(d time.Duration) { s.nanos.Add(int64(d)) }

func newClock() *simulated {
	s := &simulated{}
	s.pass(time.Duration(time.Unix(1_800_000_000, 123_456_000).UnixNano()))
	return s
}

// step is a pause, and the cost that a client tries to take at a gateway after this pause.
type step struct {
	pause   time.Duration
	cost    int64
	gateway int
}

// steps generates bursts of requests. A pause is 0, a part of a window, or about a window.
func steps(period time.Duration, least int) *rapid.Generator[[]step] {
	one := rapid.Custom(func(t *rapid.T) step {
		var least, most time.Duration
		switch rapid.IntRange(0, 7).Draw(t, "pause") {
		case 0:
			most = period / 4
		case 1:
			most = period * 5 / 4
		case 2:
			least, most = period-period/slots, period+period/slots
		}
		pause := time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, "time")).Truncate(time.Microsecond)
		return step{pause, rapid.Int64Range(1, 3).Draw(t, "cost"), rapid.IntRange(0, 1).Draw(t, "gateway")}
	})
	return rapid.SliceOfN(one, least, 4*least)
}

// use is an admitted request: the time of the admission, and the cost (n).
type use struct {
	at time.Time
	n  int64
}

// The function `most` returns the largest sum of uses in any window of a period. The window includes both its ends.
func most(uses []use, period time.Duration) (most int64) {
	for i := range uses {
		var sum int64
		for _, u := range uses[i:] {
			if u.at.Sub(uses[i].at) > period {
				break
			}
			sum += u.n
		}
		most = max(most, sum)
	}
	return most
}

// breach returns a text that names the first rate which the uses exceed, or "".
func breach(uses []use, rates []limiter.Rate) string {
	for _, r := range rates {
		if n := most(uses, r.Period); n > r.Limit {
			return fmt.Sprintf("got %d admitted in a window of %v, want at most %d", n, r.Period, r.Limit)
		}
	}
	return ""
}

var twoRates = []limiter.Rate{{Limit: 7, Period: time.Second}, {Limit: 20, Period: 10 * time.Second}}

// run takes the cost of each step at the step's gateway. It returns the costs that were admitted.
func run(
	t testContext, clock *simulated, key string, rates []limiter.Rate, all []step, gateways ...Store,
) (uses []use) {
	for _, s := range all {
		clock.pass(s.pause)
		bucket := []Bucket{{Key: Key{Name: key}, Cost: s.cost, Rates: rates}}
		v, err := gateways[s.gateway%len(gateways)].Take(t.Context(), bucket, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Wait == 0 {
			uses = append(uses, use{clock.now(), s.cost})
		}
	}
	return uses
}

func TestMemoryNeverLetsMoreThroughInAnyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := newClock()
		store := NewMemory(clock.now, 0)
		uses := run(t, clock, "k", twoRates, steps(time.Second, 15).Draw(t, "steps"), store)
		if b := breach(uses, twoRates); b != "" {
			t.Fatal(b)
		}
	})
}

func TestRedisNeverLetsMoreThroughInAnyWindow(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	clock := newClock()
	store := direct{openRedis(t, server.URL())}
	store.redis.now = clock.now
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		uses := run(t, clock, fmt.Sprint(n), twoRates, steps(time.Second, 15).Draw(t, "steps"), store)
		if b := breach(uses, twoRates); b != "" {
			t.Fatal(b)
		}
	})
}

// TestLibraryStoreBreaksTheProperty uses the library's store, which exceeds rates. The function `breach` must notice
// that.
func TestLibraryStoreBreaksTheProperty(t *testing.T) {
	for seed := range 200 {
		all := steps(time.Second, 15).Example(seed)
		var found string
		synctest.Test(t, func(t *testing.T) {
			store := memory.NewStoreWithOptions(limiter.StoreOptions{})
			rate := limiter.Rate{Limit: 7, Period: time.Second}
			var uses []use
			for _, s := range all {
				time.Sleep(s.pause)
				c := expect.Get(store.Increment(t.Context(), "k", s.cost, rate))(t)
				if !c.Reached {
					uses = append(uses, use{time.Now(), s.cost})
				}
			}
			found = breach(uses, []limiter.Rate{rate})
		})
		if found != "" {
			t.Log(found)
			return
		}
	}
	t.Error("got no breach of the limit by the library's store, want one")
}

func TestALimitIsReachedAndComesBack(t *testing.T) {
	rates := []limiter.Rate{{Limit: 100, Period: time.Second}}
	clock := newClock()
	store := NewMemory(clock.now, 0)
	take := func() Verdict {
		v := expect.Get(store.Take(t.Context(), []Bucket{{Key: Key{Name: "k"}, Cost: 1, Rates: rates}}, nil))(t)
		return v
	}
	for i := range 100 {
		if v := take(); v.Wait > 0 || v.States[0].Left != int64(99-i) {
			t.Fatalf("request %d: got %+v, want it admitted with %d left", i, v, 99-i)
		}
	}
	v := take()
	if v.Wait < time.Second || v.Wait > time.Second+time.Second/slots {
		t.Fatalf("over the limit: got a wait of %v, want a second or a slot more", v.Wait)
	}
	clock.pass(v.Wait - 1)
	expect.ErrorIf(t, take().Wait == 0, "just before the end of the wait: got the request admitted, want it refused")
	clock.pass(1)
	if got := take(); got.Wait > 0 || got.States[0].Left != 99 {
		t.Errorf("after the wait: got %+v, want the request admitted with 99 left", got)
	}
}

// Promises: charged
func TestSeveralBucketsAreTakenFromTogether(t *testing.T) {
	wide, narrow := []limiter.Rate{{Limit: 10, Period: time.Second}}, []limiter.Rate{{Limit: 2, Period: time.Second}}
	buckets := []Bucket{{Key: Key{Name: "wide"}, Cost: 1, Rates: wide}, {Key: Key{Name: "narrow"}, Cost: 1, Rates: narrow}}
	redis := direct{openRedis(t, redistest.Start(t, "--appendonly", "no").URL())}
	for _, c := range []struct {
		name  string
		store Store
	}{{"memory", NewMemory(time.Now, 0)}, {"redis", redis}} {
		t.Run(c.name, func(t *testing.T) {
			for i := range 5 {
				v := expect.Get(c.store.Take(t.Context(), buckets, nil))(t)
				if refused := v.Wait > 0; refused != (i >= 2) || refused && v.Refused != 1 {
					t.Errorf("request %d: got %+v, want it refused by the second bucket: %t", i, v, i >= 2)
				}
			}
			states := expect.Get(c.store.Peek(t.Context(), buckets, nil))(t)
			left := []int64{states[0].Left, states[1].Left}
			expect.ErrorIf(t, !slices.Equal(left, []int64{8, 0}), "got %v left, want 8 and 0", left)
		})
	}
}

func TestIdleEntriesAreDropped(t *testing.T) {
	clock := newClock()
	store := NewMemory(clock.now, 0)
	for i := range 200_000 {
		clock.pass(time.Millisecond)
		bucket := Bucket{Key: Key{Name: fmt.Sprint(i)}, Cost: 1, Rates: []limiter.Rate{{Limit: 1, Period: time.Second}}}
		expect.Get(store.Take(t.Context(), []Bucket{bucket}, nil))(t)
	}
	kept := 0
	for i := range store.table.parts {
		kept += len(store.table.parts[i].entries)
	}
	if kept > 2*shards*sweepAbove {
		t.Errorf("got %d entries, want at most %d: most of the clients are idle", kept, 2*shards*sweepAbove)
	}
}

// testContext is a testing.T or a rapid.T.
type testContext interface {
	Context() context.Context
	Fatal(args ...any)
}

func openRedis(t *testing.T, url string) *Redis {
	t.Helper()
	r := expect.Get(openWithin(url, time.Minute))(t)
	t.Cleanup(func() { r.Close() })
	return r
}
