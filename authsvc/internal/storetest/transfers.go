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
	if got, err := s.ClaimTransfer(t.Context(), "none", claimBy("asset", 1)); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("claim: got %+v, %v; want ErrNotFound", got, err)
	}
	if got, err := s.SettleTransfer(t.Context(), "none", token.Claim{}, true); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("settle: got %+v, %v; want ErrNotFound", got, err)
	}
	want, other := transfer("one"), transfer("two")
	for _, made := range []token.Transfer{want, other} {
		if err := s.CreateTransfer(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.LoadTransfer(t.Context(), "one")
	checkTransfer(t, got, err, want)
	settle := func(c token.Claim, used bool) {
		t.Helper()
		got, err := s.SettleTransfer(t.Context(), "one", c, used)
		checkTransfer(t, got, err, want)
	}
	claim := func(c token.Claim) {
		t.Helper()
		got, err := s.ClaimTransfer(t.Context(), "one", c)
		checkTransfer(t, got, err, want)
	}
	first, second := claimBy("asset", 2), claimBy("asset", 3)
	want.Claim = first
	claim(first)
	claim(claimBy("another", 9)) // has no effect, because the transfer has a claim
	want.Claim = second
	claim(second)
	claim(first)         // has no effect: this claim is older
	settle(first, false) // has no effect: this claim is older
	want.Claim = token.Claim{}
	settle(second, false)
	settle(second, true) // has no effect: the claim has ended
	want.Claim = claimBy("another", 9)
	claim(want.Claim)
	want.AssetID, want.Date, want.Claim = "another", want.Claim.Date, token.Claim{}
	settle(claimBy("another", 9), true)
	claim(first) // has no effect: the transfer was used already
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a")
	got, err = s.LoadTransfer(t.Context(), "one")
	checkTransfer(t, got, err, want)
	got, err = s.LoadTransfer(t.Context(), "two")
	checkTransfer(t, got, err, other)
}

// claimBy returns a claim for an asset.
func claimBy(asset string, generation int64) token.Claim {
	return token.Claim{AssetID: asset, Generation: generation, Date: 1_795_000_000_200_000 + generation,
		Expires: time.Now().Add(time.Hour).Truncate(time.Hour).Add(time.Hour).UnixMicro()}
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
			got, err := s.ClaimTransfer(t.Context(), "one", claimBy(fmt.Sprint("asset-", i), int64(i)))
			if err != nil || got.Claim.AssetID != fmt.Sprint("asset-", got.Claim.Generation) {
				t.Errorf("claim: got %+v, %v; want the asset and the generation of one claim", got, err)
			}
			claimed[i] = got.Claim.AssetID
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
	const claimed, unclaimed = 20, 600 // more unclaimed transfers than one step of a sweep reads
	var over time.Time                 // the latest of the expiries that the claimed transfers had before their claims
	for n := range claimed {
		made := ending(fmt.Sprint("claimed-", n), 2*time.Second)
		c := claimBy("asset", int64(n))
		if _, err := s.ClaimTransfer(t.Context(), made.ID, c); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 { // half of the claimed transfers are used too; then they never expire
			if _, err := s.SettleTransfer(t.Context(), made.ID, c, true); err != nil {
				t.Fatal(err)
			}
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
		got, err := s.LoadTransfer(t.Context(), fmt.Sprint("claimed-", n))
		if err != nil || n%2 == 0 && got.AssetID != "asset" || n%2 != 0 && got.Claim != claimBy("asset", int64(n)) {
			t.Errorf("after the expiry: got %+v, %v; want the use or the claim by the asset", got, err)
		}
	}
	got, err := s.LoadTransfer(t.Context(), "later")
	checkTransfer(t, got, err, later)
	if got, err := s.ClaimTransfer(t.Context(), "unclaimed-0", claimBy("asset", 1)); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("claim an expired transfer: got %+v, %v; want ErrNotFound", got, err)
	}
}
