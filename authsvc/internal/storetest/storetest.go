// Package storetest is the promises of token.Store and apikey.Store as tests, run
// on every store.
package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// Opener opens a store on what it kept under a name before, or anew. It
// closes it when the test ends, if the test has not.
type Opener func(t *testing.T, name string) Store

// Store is all that a store of the auth service is.
type Store interface {
	token.Store
	apikey.Store
}

// Run tests every promise of a store.
func Run(t *testing.T, open Opener) {
	for name, test := range map[string]func(*testing.T, Opener){
		"what is saved is loaded":               testSave,
		"what was not saved is not found":       testNotFound,
		"the newer generation stays":            testGenerations,
		"of many generations the newest stays":  testConcurrent,
		"all is there after opening again":      testReopen,
		"a transfer is kept, and claimed once":  testTransfer,
		"of many who claim a transfer one does": testClaim,
		"an unclaimed transfer expires":         testExpiry,
		"keys come and go":                      testKeys,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func record(generation int64) token.Record {
	return token.Record{
		AssetID:      "00112233445566778899aabbccddeeff",
		Broker:       fmt.Sprintf("брокер %d", generation),
		OwnerHash:    fmt.Sprintf("owner %d", generation),
		TransferHash: fmt.Sprintf("transfer %d", generation),
		Generation:   generation,
	}
}

func save(t *testing.T, s token.Store, r, want token.Record) {
	t.Helper()
	if got, err := s.Save(t.Context(), r); err != nil || got != want {
		t.Errorf("save: got %+v, %v; want %+v", got, err, want)
	}
	check(t, s, want)
}

func check(t *testing.T, s token.Store, want token.Record) {
	t.Helper()
	if got, err := s.Load(t.Context(), want.AssetID); err != nil || got != want {
		t.Errorf("load: got %+v, %v; want %+v", got, err, want)
	}
}

func testSave(t *testing.T, open Opener) { save(t, open(t, "a"), record(1), record(1)) }

func testNotFound(t *testing.T, open Opener) {
	if got, err := open(t, "a").Load(t.Context(), "none"); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("got %+v, %v; want ErrNotFound", got, err)
	}
}

func testGenerations(t *testing.T, open Opener) {
	s := open(t, "a")
	save(t, s, record(2), record(2))
	save(t, s, record(1), record(2))
	same := record(2)
	same.OwnerHash = "another"
	save(t, s, same, record(2))
	save(t, s, record(3), record(3))
}

func testConcurrent(t *testing.T, open Opener) {
	s := open(t, "a")
	const newest = 30
	var wg sync.WaitGroup
	for generation := range int64(newest) {
		wg.Go(func() {
			got, err := s.Save(t.Context(), record(generation+1))
			if err != nil || got.Generation < generation+1 {
				t.Errorf("save %d: got %+v, %v", generation+1, got, err)
			}
		})
	}
	wg.Wait()
	check(t, s, record(newest))
}

func testReopen(t *testing.T, open Opener) {
	s := open(t, "a")
	save(t, s, record(2), record(2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a")
	check(t, s, record(2))
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

func transfer(id string) token.Transfer {
	return token.Transfer{ID: id, Broker: "брокер", OwnerHash: "owner", TransferHash: "transfer", Date: 1_795_000_000_123_456}
}

func checkTransfer(t *testing.T, got token.Transfer, err error, want token.Transfer) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func testTransfer(t *testing.T, open Opener) {
	s := open(t, "a")
	if got, err := s.LoadTransfer(t.Context(), "none"); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("got %+v, %v; want ErrNotFound", got, err)
	}
	if got, err := s.ClaimTransfer(t.Context(), "none", "asset", 1); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("got %+v, %v; want ErrNotFound", got, err)
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
				t.Errorf("got %+v, %v", got, err)
			}
			claimed[i] = got.AssetID
		})
	}
	wg.Wait()
	for _, asset := range claimed {
		if asset != claimed[0] {
			t.Errorf("it was claimed for %q and %q", claimed[0], asset)
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
	const claimed, unclaimed = 20, 600 // unclaimed: more than one step of a sweep
	var over time.Time                 // when none of them would be left
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
			t.Fatalf("got %d expired transfers, want none", left())
		}
		for cursor, steps := "", 0; steps == 0 || cursor != ""; steps++ {
			var err error
			if cursor, err = s.SweepTransfers(t.Context(), cursor, time.Now(), over.Add(time.Hour)); err != nil {
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
		t.Errorf("an expired transfer was claimed: got %+v, %v", got, err)
	}
}

func testKeys(t *testing.T, open Opener) {
	s := open(t, "a")
	find := func(key string, want identity.Identity, wanted error) {
		t.Helper()
		if got, err := s.FindKey(t.Context(), authapi.Hash(key)); got != want || !errors.Is(err, wanted) {
			t.Errorf("got %+v, %v; want %+v, %v", got, err, want, wanted)
		}
	}
	add := func(key string, i identity.Identity, wanted error) {
		t.Helper()
		if err := s.AddKey(t.Context(), authapi.Hash(key), i); !errors.Is(err, wanted) {
			t.Errorf("add %s: got %v, want %v", key, err, wanted)
		}
	}
	one := identity.Identity{KeyID: "one", Broker: "Брокер", Role: identity.Broker, Levels: "13t"}
	two := identity.Identity{KeyID: "two", Broker: "Брокер", Role: identity.Concierge}
	find("a", identity.Identity{}, apikey.ErrNotFound)
	add("a", one, nil)
	add("b", two, nil)
	add("c", one, apikey.ErrExists)
	find("a", one, nil)
	find("b", two, nil)
	find("c", identity.Identity{}, apikey.ErrNotFound)
	if err := s.RemoveKey(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveKey(t.Context(), "one"); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	find("a", identity.Identity{}, apikey.ErrNotFound)
	add("c", one, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a")
	find("a", identity.Identity{}, apikey.ErrNotFound)
	find("b", two, nil)
	find("c", one, nil)
}
