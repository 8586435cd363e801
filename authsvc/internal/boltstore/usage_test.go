package boltstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
	"asset-registry/shared/testing/expect"
)

func empty(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "tokens.db"), Options{})
	expect.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestAKeyKeepsTheCountsOfItsNewestDays counts requests on three more days than a key keeps. The key must keep only the
// counts of the newest days. Keys with similar ids must keep all their counts.
func TestAKeyKeepsTheCountsOfItsNewestDays(t *testing.T) {
	s := empty(t)
	var days []string
	var counts []authapi.Count
	for i := range keptDays + 3 {
		day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i).Format(time.DateOnly)
		days = append(days, day)
		for _, class := range []string{"read", "write"} {
			counts = append(counts, authapi.Count{KeyID: "k1", Day: day, Class: class, Requests: 1})
		}
		if i < keptDays {
			counts = append(counts, authapi.Count{KeyID: "k12", Day: day, Class: "read", Requests: 2},
				authapi.Count{KeyID: "k", Day: day, Class: "read", Requests: 3})
		}
	}
	expect.OK(t, s.AddUsage(t.Context(), nil, counts))
	for id, want := range map[string][]string{"k1": days[3:], "k12": days[:keptDays], "k": days[:keptDays]} {
		got, err := s.Counts(t.Context(), id, days)
		if err != nil || len(got) != keptDays || got[0].Day != want[0] || got[keptDays-1].Day != want[keptDays-1] {
			t.Errorf("%s: got %d days, %v; want %d from %s on", id, len(got), err, keptDays, want[0])
		}
		if id == "k1" && (len(got[0].Counts) != 2 || len(got[keptDays-1].Counts) != 2) {
			t.Errorf("got %v and %v, want both classes", got[0], got[keptDays-1])
		}
	}
}

// TestAClockOpensNoEndedSession ends sessions with clocks that are wrong. All must stay ended. Only the session that may be
// forgotten first goes if there are too many.
func TestAClockOpensNoEndedSession(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	s := empty(t)
	wrong := map[string]time.Duration{"-10y": -10 * year, "-1d": -day, "-1m": -time.Minute, "1m": time.Minute, "1d": day, "10y": 10 * year}
	for id, ahead := range wrong {
		expect.OK(t, s.EndSession(t.Context(), id, ahead+time.Hour))
	}
	ended := func(id string, want bool) {
		t.Helper()
		expect.Value(t, want, "session %s", id)(s.SessionEnded(t.Context(), id))
	}
	for id := range wrong {
		ended(id, true)
	}
	err := s.file.Update(func(tx *bbolt.Tx) (err error) {
		for n := range maxSessions - len(wrong) {
			err = errors.Join(err, tx.Bucket(sessionBucket).Put(fmt.Append(nil, "s", n), number(time.Now().UnixMicro())))
		}
		return err
	})
	expect.OK(t, err)
	for range 2 {
		expect.OK(t, s.EndSession(t.Context(), "last", time.Hour))
	}
	ended("last", true)
	ended("-10y", false)
	ended("-1d", true)
}

// TestASweepLooksAgain sweeps two transfers that were expired when they were read. Meanwhile one was claimed,
// and one has disappeared. The claimed one must stay.
func TestASweepLooksAgain(t *testing.T) {
	s := empty(t)
	want := token.Transfer{ID: "one", Broker: "b", Expires: time.Now().Add(time.Hour).UnixMicro()}
	expect.OK(t, s.CreateTransfer(t.Context(), want))
	err := s.file.Update(func(tx *bbolt.Tx) error { return sweep(tx, []string{"one", "gone"}, time.Now()) })
	if got, missing := s.LoadTransfer(t.Context(), "one"); err != nil || missing != nil || got != want {
		t.Errorf("got %+v, %v, %v; want %+v", got, missing, err, want)
	}
}

// TestASweepGoesOn has two expired transfers behind so many unexpired ones that one step does not reach them. The
// next steps must go on from there, and remove both.
func TestASweepGoesOn(t *testing.T) {
	s := empty(t)
	now := time.Now()
	const later = 2*sweepStep - 1
	expect.OK(t, s.file.Update(func(tx *bbolt.Tx) (err error) {
		for i := range later {
			made := token.Transfer{ID: fmt.Sprintf("a-%04d", i), Expires: now.Add(time.Hour).UnixMicro()}
			err = errors.Join(err, putTransfer(tx, made))
		}
		for _, id := range []string{"b", "c"} {
			err = errors.Join(err, putTransfer(tx, token.Transfer{ID: id, Expires: now.Add(-time.Hour).UnixMicro()}))
		}
		return err
	}))
	for cursor, steps := "", []string{"a-0499", "b", ""}; len(steps) > 0; steps = steps[1:] {
		next, err := s.SweepTransfers(t.Context(), cursor, now)
		if err != nil || next != steps[0] {
			t.Fatalf("after %q: got the cursor %q, %v; want %q", cursor, next, err, steps[0])
		}
		cursor = next
	}
	left := 0
	if err := s.EachTransfer(func(token.Transfer) error { left++; return nil }); err != nil || left != later {
		t.Errorf("got %d transfers, %v; want the %d that are not due", left, err, later)
	}
}

// TestADayIsForgottenWithAllItsClasses counts two classes on the day that is forgotten, and one class on the new
// day. Both classes of the old day must go.
func TestADayIsForgottenWithAllItsClasses(t *testing.T) {
	s := empty(t)
	var days []string
	var counts []authapi.Count
	for i := range keptDays + 1 {
		day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i).Format(time.DateOnly)
		days = append(days, day)
		for _, class := range []string{"read", "write"}[:min(2, keptDays+1-i)] {
			counts = append(counts, authapi.Count{KeyID: "k", Day: day, Class: class, Requests: 1})
		}
	}
	expect.OK(t, s.AddUsage(t.Context(), nil, counts))
	got, err := s.Counts(t.Context(), "k", days)
	if err != nil || len(got) != keptDays || got[0].Day != days[1] {
		t.Errorf("got %d days, %v; want %d from %s on", len(got), err, keptDays, days[1])
	}
}

// TestTwoDueTransfersAreSweptAtOnce sweeps several expired transfers in one step. None of them may be left.
func TestTwoDueTransfersAreSweptAtOnce(t *testing.T) {
	s := empty(t)
	now := time.Now()
	for _, id := range []string{"one", "two", "three"} {
		made := token.Transfer{ID: id, Expires: now.Add(-time.Hour).UnixMicro()}
		expect.OK(t, s.CreateTransfer(t.Context(), made))
	}
	expect.Get(s.SweepTransfers(t.Context(), "", now))(t)
	expect.Try(t, s.EachTransfer(func(left token.Transfer) error { return fmt.Errorf("%s is left", left.ID) }))
}

func TestAVisitOfTransfersEndsWithItsError(t *testing.T) {
	s := empty(t)
	for _, id := range []string{"one", "two"} {
		expect.OK(t, s.CreateTransfer(t.Context(), token.Transfer{ID: id}))
	}
	want, visits := errors.New("no more"), 0
	if err := s.EachTransfer(func(token.Transfer) error { visits++; return want }); !errors.Is(err, want) || visits != 1 {
		t.Errorf("got %v after %d visits, want %v after one", err, visits, want)
	}
}

// TestWhatTheFileCannotHoldIsRefused uses names that are longer than a key of the file can be. The store must refuse
// them.
func TestWhatTheFileCannotHoldIsRefused(t *testing.T) {
	s, long := empty(t), strings.Repeat("x", 1<<16)
	count := authapi.Count{KeyID: "k", Day: "2025-01-01", Class: long, Requests: 1}
	for what, err := range map[string]error{
		"a transfer": s.CreateTransfer(t.Context(), token.Transfer{ID: long}),
		"a count":    s.AddUsage(t.Context(), nil, []authapi.Count{count}),
	} {
		expect.ErrorIf(t, err == nil, "%s: got no error, want one", what)
	}
}

func TestAnEndedCallThatSealsNothingIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Err(t, empty(t).Reseal(ctx, nil), context.Canceled, "")
}
