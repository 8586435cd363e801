package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
)

func empty(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "tokens.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestAKeyKeepsTheCountsOfItsNewestDays counts three days more than a key keeps, beside keys with similar ids.
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
	if err := s.AddUsage(t.Context(), nil, counts); err != nil {
		t.Fatal(err)
	}
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

// TestSessionsThatAreOverAreForgotten has a session that is over, and a damaged one.
func TestSessionsThatAreOverAreForgotten(t *testing.T) {
	s := empty(t)
	if err := s.EndSession(t.Context(), "over", -time.Second); err != nil {
		t.Fatal(err)
	}
	err := s.file.Update(func(tx *bbolt.Tx) error { return tx.Bucket(sessionBucket).Put([]byte("damaged"), []byte("x")) })
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		if err := s.EndSession(t.Context(), id, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]bool{"over": false, "damaged": false, "first": true, "second": true} {
		if got, err := s.SessionEnded(t.Context(), id); err != nil || got != want {
			t.Errorf("session %s: got ended %v, %v; want %v", id, got, err, want)
		}
	}
}

// TestASweepLooksAgain sweeps transfers that were due when somebody read them: one that a caller has claimed since, and
// one that is gone.
func TestASweepLooksAgain(t *testing.T) {
	s := empty(t)
	want := token.Transfer{ID: "one", Broker: "b", Expires: time.Now().Add(time.Hour).UnixMicro()}
	if err := s.CreateTransfer(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	err := s.file.Update(func(tx *bbolt.Tx) error { return sweep(tx, []string{"one", "gone"}, time.Now()) })
	if got, missing := s.LoadTransfer(t.Context(), "one"); err != nil || missing != nil || got != want {
		t.Errorf("got %+v, %v, %v; want %+v", got, missing, err, want)
	}
}

// TestASweepGoesOn has more transfers that are not due than one step reads, and one behind them that is due.
func TestASweepGoesOn(t *testing.T) {
	s := empty(t)
	now := time.Now()
	const later = 2*sweepStep - 1
	if err := s.file.Update(func(tx *bbolt.Tx) (err error) {
		for i := range later {
			made := token.Transfer{ID: fmt.Sprintf("a-%04d", i), Expires: now.Add(time.Hour).UnixMicro()}
			err = errors.Join(err, putTransfer(tx, made))
		}
		return errors.Join(err, putTransfer(tx, token.Transfer{ID: "b", Expires: now.Add(-time.Hour).UnixMicro()}))
	}); err != nil {
		t.Fatal(err)
	}
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
