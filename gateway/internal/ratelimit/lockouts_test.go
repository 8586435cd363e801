package ratelimit

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
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
		if got := max(l.wait(addr, at(after)), 0); got != want {
			t.Errorf("%s: got a wait of %v, want %v", name, got, want)
		}
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
	if len(l.until) != 1 {
		t.Errorf("got %d addresses after an end, want the other one alone", len(l.until))
	}
	must("another address after that end", b, 20*time.Second, 40*time.Second)
	must("its end", b, time.Minute, 0)
	if len(l.until) > 0 || l.some.Load() {
		t.Errorf("got %d addresses and some %v after all ends, want none", len(l.until), l.some.Load())
	}
}

func TestLockoutsAreBounded(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		now  time.Time // when another address is locked out, in addition to maxLockouts addresses
		left int
	}{
		{"those that have ended are forgotten", start.Add(time.Second), maxLockouts/2 + 1},
		{"if none has ended, all are", start.Add(time.Second - 1), 1},
	} {
		var l lockouts
		for n := range maxLockouts {
			l.add(address(n), start, start.Add(time.Second+time.Duration(n%2)*time.Hour))
		}
		if len(l.until) != maxLockouts {
			t.Errorf("%s: got %d addresses, want %d", c.name, len(l.until), maxLockouts)
		}
		more := address(maxLockouts)
		l.add(more, c.now, c.now.Add(time.Minute))
		if got := l.wait(more, func() time.Time { return c.now }); len(l.until) != c.left || got != time.Minute {
			t.Errorf("%s: got %d addresses, and a wait of %v of the newest; want %d, %v", c.name, len(l.until), got, c.left,
				time.Minute)
		}
	}
}

// TestALockoutIsMeasuredByNoClockOfTheDay locks an address out. The end must have a monotonic time, so that an address is not
// locked out for years if the clock is set back.
func TestALockoutIsMeasuredByNoClockOfTheDay(t *testing.T) {
	l := wrongKeysOf(t, NewMemory(time.Now), time.Now, 1, map[string]int64{"1h": 3})
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
