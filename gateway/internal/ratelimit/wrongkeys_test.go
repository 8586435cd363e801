package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// wrongKeysOf returns a limiter of wrong keys. It also has a policy for other requests of the same addresses.
func wrongKeysOf(t *testing.T, store Store, now func() time.Time, cost int64, windows map[string]int64) *Limiter {
	t.Helper()
	l := New(store, Table{
		{Name: "r", By: ByAddress, Costs: map[Class]int64{routes.Read: 1}, Windows: map[string]int64{"1s": 1}},
		{Name: "f", By: ByAddress, Costs: map[Class]int64{Failed: cost}, Windows: windows},
	}, now, noop.NewMeterProvider().Meter(""))
	return l
}

// TestWrongKeysAreRefusedAboveTheirLimit sends wrong keys one after the other. It does not call CheckLockout between
// them, so it is the limit itself that refuses. The refusal must name the end of the lockout.
func TestWrongKeysAreRefusedAboveTheirLimit(t *testing.T) {
	guesser := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name    string
		cost    int64
		windows map[string]int64
		within  int    // number of wrong keys within the limit
		limit   string // the limit that refuses
		state   string // beginning of the value of the header StateHeader
	}{
		{"the shorter window", 1, map[string]int64{"1m": 3, "1h": 10}, 3, "3", `"f-1m";r=0;t=`},
		{"the longer window", 1, map[string]int64{"1m": 10, "1h": 3}, 3, "3", `"f-1m";r=6;t=`},
		{"a rest that is too little", 2, map[string]int64{"1m": 3}, 1, "3", `"f-1m";r=1;t=`},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newClock()
			l := wrongKeysOf(t, NewMemory(clock.now, 0), clock.now, c.cost, c.windows)
			for n := range c.within {
				answer := http.Header{}
				if err := l.CountWrongKey(t.Context(), answer, guesser); err != nil || len(answer) > 0 {
					t.Errorf("key %d: got %v and headers %v, want neither", n+1, err, answer)
				}
			}
			answer := http.Header{}
			err := l.CountWrongKey(t.Context(), answer, guesser)
			wait := waitOf(t, err)
			if fault.KindOf(err) != fault.TooMany || answer.Get(LimitHeader) != c.limit ||
				!strings.HasPrefix(answer.Get(StateHeader), c.state) || wait < time.Second {
				t.Errorf("one more: got %v, a wait of %v and headers %v; want a refusal by a limit of %s and %s", err, wait,
					answer, c.limit, c.state)
			}
			if locked := waitOf(t, l.CheckLockout(t.Context(), guesser)); locked != wait {
				t.Errorf("got a lockout of %v, want %v as the refusal says", locked, wait)
			}
			expect.Err(t, l.CheckLockout(t.Context(), netip.MustParseAddr("192.0.2.2")), nil, "another address")
			clock.pass(wait)
			expect.Err(t, l.CheckLockout(t.Context(), guesser), nil, "after the wait")
			expect.Err(t, l.CountWrongKey(t.Context(), http.Header{}, guesser), nil, "the next wrong key")
		})
	}
}

// answering is a store that always gives the same answer.
type answering struct {
	Store
	err error
}

func (a answering) Take(context.Context, []Bucket, []State) (Verdict, error) { return Verdict{}, a.err }

func TestWrongKeysThatCannotBeCounted(t *testing.T) {
	guesser, broken := netip.MustParseAddr("192.0.2.1"), errors.New("broken")
	for _, c := range []struct {
		name string
		err  error
		kind fault.Kind
	}{
		{"nothing is counted", nil, fault.KindOf(nil)},
		{"the store is down", ErrStoreDown, fault.Unavailable},
		{"the store fails", broken, fault.Internal},
	} {
		l := wrongKeysOf(t, answering{err: c.err}, time.Now, 1, map[string]int64{"1m": 3})
		err := l.CountWrongKey(t.Context(), http.Header{}, guesser)
		if !errors.Is(err, c.err) || err != nil && fault.KindOf(err) != c.kind {
			t.Errorf("%s: got %v, want %v", c.name, err, c.err)
		}
		if err := l.CheckLockout(t.Context(), guesser); err != nil {
			t.Errorf("%s: got the lockout %v, want none", c.name, err)
		}
	}
}

// address returns one of many addresses.
func address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

func TestALockoutLastsUntilItsEnd(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	a, b := address(1), address(2)
	var l lockouts
	at := func(after time.Duration) func() time.Time { return func() time.Time { return start.Add(after) } }
	must := func(name string, addr netip.Addr, after, want time.Duration) {
		t.Helper()
		expect.Equal(t, max(l.wait(addr, at(after)), 0), want, "%s, a wait of", name)
	}
	must("before any lockout", a, 0, 0)
	l.add(a, start, start.Add(10*time.Second))
	l.add(b, start, start.Add(time.Minute))
	must("locked out", a, 0, 10*time.Second)
	must("another address", address(3), 0, 0)
	l.add(a, start, start.Add(5*time.Second))
	must("a shorter lockout", a, 0, 10*time.Second)
	l.add(a, start, start.Add(20*time.Second))
	must("a longer lockout", a, 0, 20*time.Second)
	must("just before its end", a, 20*time.Second-1, 1)
	must("at its end", a, 20*time.Second, 0)
	expect.Equal(t, len(l.until), 1, "addresses after an end")
	must("another address after that end", b, 20*time.Second, 40*time.Second)
	must("its end", b, time.Minute, 0)
	if len(l.until) > 0 || l.some.Load() {
		t.Errorf("got %d addresses and some %v after all ends, want none", len(l.until), l.some.Load())
	}
}

// TestNoLockoutIsForgottenByFilling locks out more addresses than there is room for, in prefixes of their own. Each one
// must be locked out until its end, and an address of another prefix must not.
func TestNoLockoutIsForgottenByFilling(t *testing.T) {
	const most, all = 100, 300
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	of := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{byte(10 + n>>8), byte(n), 1, 1}) }
	for _, c := range []struct {
		name  string
		after time.Duration // when the second half of the addresses is locked out
		kept  int           // addresses that are remembered
	}{
		{"lockouts that have ended make room", time.Hour, most},
		{"if none has ended, the newest go by their prefix", time.Hour - 1, most},
	} {
		var l lockouts
		l.most = most
		for n := range most {
			l.add(of(n), start, start.Add(time.Hour))
		}
		now := start.Add(c.after)
		ends := func(n int) time.Duration { return time.Duration(n) * time.Second }
		for n := most; n < all; n++ {
			l.add(of(n), now, now.Add(ends(n)))
		}
		expect.Equal(t, len(l.until), c.kept, "%s, addresses", c.name)
		at := func() time.Time { return now }
		for n := range most {
			if got, want := max(l.wait(of(n), at), 0), time.Hour-c.after; got < want {
				t.Errorf("%s: address %d: got a wait of %v, want %v", c.name, n, got, want)
			}
		}
		for n := most; n < all; n++ {
			if got := l.wait(of(n), at); got < ends(n) {
				t.Errorf("%s: address %d: got a wait of %v, want %v", c.name, n, got, ends(n))
			}
		}
		if got := l.wait(of(all-1).Next(), at); got < ends(all-1) {
			t.Errorf("%s: another address of a prefix: got a wait of %v, want %v", c.name, got, ends(all-1))
		}
		free := 0
		for n := range 100 {
			if l.wait(netip.AddrFrom4([4]byte{100, byte(n), 1, 1}), at) <= 0 {
				free++
			}
		}
		if free < 70 { // by chance, a few prefixes share the slot of another one
			t.Errorf("%s: other prefixes: got %d of 100 that are free, want nearly all", c.name, free)
		}
		now = now.Add(ends(all))
		for n := range all {
			if got := l.wait(of(n), at); got > 0 {
				t.Errorf("%s: address %d after all ends: got a wait of %v, want none", c.name, n, got)
			}
		}
		expect.ErrorIf(t, l.prefixes != nil || l.some.Load(), "%s: after all ends: got prefixes, want none", c.name)
	}
}

// TestALockoutIsMeasuredByNoClockOfTheDay locks an address out. The end must have a monotonic time, so that an address is not
// locked out for years if the clock is set back.
func TestALockoutIsMeasuredByNoClockOfTheDay(t *testing.T) {
	l := wrongKeysOf(t, NewMemory(time.Now, 0), time.Now, 1, map[string]int64{"1h": 3})
	for range 10 {
		if l.CountWrongKey(t.Context(), http.Header{}, address(1)) != nil {
			break
		}
	}
	for addr, until := range l.lockouts.until {
		if !strings.Contains(until.String(), " m=") {
			t.Errorf("%s: got the end %v, want one with a monotonic time", addr, until)
		}
	}
	expect.ErrorIf(t, len(l.lockouts.until) == 0, "got no lockout, want one")
}
