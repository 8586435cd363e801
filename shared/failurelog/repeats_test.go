package failurelog

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeatsAreCounted sends two clients' refusals for two minutes, from ever new addresses of a network of 64 bits
// and from one IPv4 address. The log must have the first of each, and all others as numbers.
func TestRepeatsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		r := NewRepeats(slog.New(slog.NewTextHandler(&text, nil)))
		firsts := 0
		for n := range 24_000 {
			for _, client := range []string{fmt.Sprintf("2001:db8::%x", n), "192.0.2.1"} {
				if r.IsFirst(Cause{What: "request", Status: 429, Client: client}) {
					firsts++
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(2 * tellEvery)
		synctest.Wait()
		told := text.String()
		if firsts != 2 || strings.Count(told, "\n") != 4 || strings.Count(told, "times=11999") != 2 ||
			strings.Count(told, "times=12000") != 2 || strings.Count(told, "client=2001:db8::/64") != 2 {
			t.Errorf("got %d first lines and\n%swant 2 of each kind, with 23,999 more for each client", firsts, told)
		}
		if c := (Cause{What: "request", Status: 429, Client: "192.0.2.1"}); !r.IsFirst(c) || r.IsFirst(c) {
			t.Error("got no first line after a quiet minute, or two; want one")
		}
	})
}

// TestRepeatsAreBounded sends refusals of 100,000 clients with two statuses. The log must tell 1,000 causes apart, and
// the others by status. None may be missing.
func TestRepeatsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		r := NewRepeats(slog.New(slog.NewTextHandler(&text, nil)))
		firsts := 0
		for n := range 200_000 {
			client := fmt.Sprintf("10.%d.%d.%d", n>>17, n>>9&255, n>>1&255)
			if r.IsFirst(Cause{What: "request", Of: client, Status: 400 + n%2, Client: client}) {
				firsts++
			}
		}
		causes := func() int {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.counts)
		}
		if got := causes(); got > maxCauses+2 || firsts != got {
			t.Errorf("got %d causes and %d first lines, want at most %d of each", got, firsts, maxCauses+2)
		}
		time.Sleep(2 * tellEvery)
		synctest.Wait()
		const each = (200_000 - maxCauses - 2) / 2
		if got, want := text.String(), fmt.Sprintf("times=%d", each); strings.Count(got, want) != 2 || causes() > 0 {
			t.Errorf("got %d causes and\n%.2000s\nwant none, and twice %s", causes(), got, want)
		}
	})
}
