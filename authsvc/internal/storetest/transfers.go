package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"asset-registry/authsvc/internal/token"
)

func transfer(id string) token.Transfer {
	return token.Transfer{
		ID: id, Broker: "брокер", OwnerHash: "owner", TransferHash: "transfer", Date: 1_795_000_000_123_456,
	}
}

func checkTransfer(t *testing.T, got token.Transfer, err error, want token.Transfer) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func testTransfer(t *testing.T, open Opener) {
	s := open(t, "a")
	if got, err := s.LoadTransfer(t.Context(), "none"); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("load: got %+v, %v; want ErrNotFound", got, err)
	}
	if got, err := s.ClaimTransfer(t.Context(), "none", "asset", 1); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("claim: got %+v, %v; want ErrNotFound", got, err)
	}
	want, other := transfer("one"), transfer("two")
	for _, made := range []token.Transfer{want, other} {
		if err := s.CreateTransfer(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.LoadTransfer(t.Context(), "one")
	checkTransfer(t, got, err, want)
	want.AssetID, want.Date = "asset", want.Date+1
	for i, claimed := range []string{"asset", "asset", "another"} {
		got, err = s.ClaimTransfer(t.Context(), "one", claimed, want.Date+int64(i)*10)
		checkTransfer(t, got, err, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a")
	got, err = s.LoadTransfer(t.Context(), "one")
	checkTransfer(t, got, err, want)
	got, err = s.LoadTransfer(t.Context(), "two")
	checkTransfer(t, got, err, other)
}

func testClaim(t *testing.T, open Opener) {
	s := open(t, "a")
	if err := s.CreateTransfer(t.Context(), transfer("one")); err != nil {
		t.Fatal(err)
	}
	const racers = 10
	var claimed [racers]string
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			got, err := s.ClaimTransfer(t.Context(), "one", fmt.Sprint("asset-", i), int64(i))
			if err != nil || got.AssetID != fmt.Sprint("asset-", got.Date) {
				t.Errorf("claim: got %+v, %v; want the asset and the date of one claim", got, err)
			}
			claimed[i] = got.AssetID
		})
	}
	wg.Wait()
	for _, asset := range claimed {
		if asset != claimed[0] {
			t.Errorf("got claims for %q and %q, want one asset", claimed[0], asset)
		}
	}
}

func testExpiry(t *testing.T, open Opener) {
	s := open(t, "a")
	ending := func(id string, within time.Duration) token.Transfer {
		made := transfer(id)
		made.Expires = time.Now().Add(within).UnixMicro()
		if err := s.CreateTransfer(t.Context(), made); err != nil {
			t.Error(err)
		}
		return made
	}
	const claimed, unclaimed = 20, 600 // a sweep of the unclaimed transfers takes more than one step
	var over time.Time                 // the last expiry of a claimed transfer
	for n := range claimed {
		made := ending(fmt.Sprint("claimed-", n), 2*time.Second)
		if _, err := s.ClaimTransfer(t.Context(), made.ID, "asset", made.Date+1); err != nil {
			t.Fatal(err)
		}
		over = time.UnixMicro(made.Expires)
	}
	var making sync.WaitGroup
	const makers = 8
	for first := range makers {
		making.Go(func() {
			for n := first; n < unclaimed; n += makers {
				ending(fmt.Sprint("unclaimed-", n), 100*time.Millisecond)
			}
		})
	}
	making.Wait()
	later := ending("later", time.Hour)
	left := func() (n int) {
		for id := range unclaimed {
			if _, err := s.LoadTransfer(t.Context(), fmt.Sprint("unclaimed-", id)); !errors.Is(err, token.ErrNotFound) {
				n++
			}
		}
		return n
	}
	for deadline := over.Add(20 * time.Second); time.Now().Before(over) || left() > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("got %d unclaimed transfers after their expiry, want none", left())
		}
		for cursor, steps := "", 0; steps == 0 || cursor != ""; steps++ {
			var err error
			if cursor, err = s.SweepTransfers(t.Context(), cursor, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range claimed {
		want := transfer(fmt.Sprint("claimed-", n))
		want.AssetID, want.Date = "asset", want.Date+1
		got, err := s.ClaimTransfer(t.Context(), want.ID, "asset", want.Date+1)
		checkTransfer(t, got, err, want)
	}
	got, err := s.LoadTransfer(t.Context(), "later")
	checkTransfer(t, got, err, later)
	if got, err := s.ClaimTransfer(t.Context(), "unclaimed-0", "asset", 1); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("claim an expired transfer: got %+v, %v; want ErrNotFound", got, err)
	}
}
