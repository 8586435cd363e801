package ratelimit

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

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
		expect.Equal(t, max(l.wait(addr, at(after)), 0), want, "%s: a wait of", name)
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
		expect.Equal(t, len(l.until), c.kept, "%s: addresses", c.name)
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
		if l.prefixes != nil || l.some.Load() {
			t.Errorf("%s: after all ends: got prefixes, want none", c.name)
		}
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
	if len(l.lockouts.until) == 0 {
		t.Error("got no lockout, want one")
	}
}
