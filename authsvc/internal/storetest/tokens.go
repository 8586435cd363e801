package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"asset-registry/authsvc/internal/token"
)

func record(generation int64) token.Record {
	return token.Record{
		AssetID:      "00112233445566778899aabbccddeeff",
		Broker:       fmt.Sprintf("брокер %d", generation),
		OwnerHash:    fmt.Sprintf("owner %d", generation),
		TransferHash: fmt.Sprintf("transfer %d", generation),
		Generation:   generation,
	}
}

// save saves the record r. Save, and then Load, must return the wanted record.
func save(t *testing.T, s token.Store, r, want token.Record) {
	t.Helper()
	if got, err := s.Save(t.Context(), r); err != nil || got != want {
		t.Errorf("save: got %+v, %v; want %+v", got, err, want)
	}
	check(t, s, want)
}

// check fails the test if Load does not return the wanted record.
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
				t.Errorf("save: got %+v, %v; want generation %d or newer", got, err, generation+1)
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
		t.Errorf("ready: got %v, want no error", err)
	}
}
