package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
	"asset-registry/shared/logtest"
	"asset-registry/shared/testing/expect"
)

// fail sets the result of later reports.
func (r *taking) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func TestUsageIsReportedEveryTwoSecondsAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		to := &taking{}
		u := NewUsage(to, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), time.Now)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			u.Run(ctx)
		}()
		for i := range 3 {
			u.Count(fmt.Sprint("k", i), "read")
			time.Sleep(reportEvery + time.Millisecond)
			synctest.Wait()
			to.mu.Lock()
			if len(to.reports) != i+1 {
				t.Errorf("got %d reports after %d times, want one each", len(to.reports), i+1)
			}
			to.mu.Unlock()
		}
		to.fail(context.Canceled) // the error of a process that ends: it needs no line in the log
		u.Count("k3", "read")
		time.Sleep(reportEvery)
		synctest.Wait()
		expect.Equal(t, log.String(), "", "the log")
		to.fail(errors.New("down"))
		time.Sleep(reportEvery)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "could not be reported") != 1 {
			t.Errorf("got the log %q, want one line", text)
		}
		to.fail(nil)
		u.Count("k4", "read")
		stop()
		<-done
		if last := to.reports[len(to.reports)-1]; len(to.reports) != 4 || len(last.Counts) != 2 {
			t.Errorf("got %d reports, the last with %+v; want a fourth one with k3 and k4", len(to.reports), last)
		}
	})
}

func TestUsageIsBounded(t *testing.T) {
	to := &taking{}
	u := NewUsage(to, slog.New(slog.DiscardHandler), time.Now)
	for i := range maxPending + 7 {
		u.Used(authapi.Key{Identity: identity.Identity{KeyID: fmt.Sprint(i)}}, netip.MustParseAddr("192.0.2.1"))
		u.Count(fmt.Sprint(i), "read")
	}
	u.Used(authapi.Key{Identity: identity.Identity{KeyID: "k"}}, netip.Addr{}) // without an address
	expect.OK(t, u.report(t.Context()))
	uses, counts := 0, 0
	for _, r := range to.reports {
		uses, counts = uses+len(r.Uses), counts+len(r.Counts)
		if max(len(r.Uses), len(r.Counts)) > authapi.MaxReport {
			t.Errorf("got %d uses and %d counts in a report, want at most %d", len(r.Uses), len(r.Counts), authapi.MaxReport)
		}
	}
	if uses != maxPending || counts != maxPending {
		t.Errorf("got %d uses and %d counts, want %d of each", uses, counts, maxPending)
	}
}

func TestAnInvalidAddressIsNoUse(t *testing.T) {
	to := &taking{}
	u := NewUsage(to, slog.New(slog.DiscardHandler), time.Now)
	u.Used(authapi.Key{Identity: identity.Identity{KeyID: "k"}}, netip.Addr{})
	if err := u.report(t.Context()); err != nil || len(to.reports) != 0 {
		t.Errorf("got %+v, %v; want no report", to.reports, err)
	}
}

// TestADayEndsInUTC counts requests while the clock passes midnight, and after the clock steps back over midnight. Each
// request must be counted on its day in UTC.
func TestADayEndsInUTC(t *testing.T) {
	midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	now := midnight
	to := &taking{}
	u := NewUsage(to, slog.New(slog.DiscardHandler), func() time.Time { return now.In(time.FixedZone("", 7200)) })
	for _, at := range []time.Duration{-time.Nanosecond, 0, day - 1, -1, day} {
		now = midnight.Add(at)
		u.Count("k", "read")
	}
	if err := u.report(t.Context()); err != nil || len(to.reports) != 1 {
		t.Fatalf("got %+v, %v; want one report", to.reports, err)
	}
	got := map[string]int64{}
	for _, c := range to.reports[0].Counts {
		got[c.Day] = c.Requests
	}
	if want := map[string]int64{"2026-11-21": 2, "2026-11-22": 2, "2026-11-23": 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
