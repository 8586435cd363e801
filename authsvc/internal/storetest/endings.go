package storetest

import (
	"testing"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// testGap commits an entry whose number is not the next one, as after a loss of entries. Pages of all sizes must have
// the entries on both sides of the gap.
func testGap(t *testing.T, open Opener) {
	s := open(t, "a")
	first := commitChange(t, s, admin.Change{}).Entry
	lost := entry(adminapi.Head{Seq: 40, Hash: first.Hash}, "log")
	lost.Action = adminapi.LogLost
	if err := s.Commit(t.Context(), headOf(first), admin.Change{Entry: lost}); err != nil {
		t.Fatal(err)
	}
	last := commitChange(t, s, admin.Change{}).Entry
	want := []adminapi.Entry{first, lost, last}
	for limit := 1; limit <= 4; limit++ {
		entries, err := s.Entries(t.Context(), 0, limit)
		equal(t, entries, err, want[:min(limit, 3)])
	}
	for after, from := range map[int64]int{1: 1, 20: 1, 40: 1, 41: 2, 42: 3} {
		entries, err := s.Entries(t.Context(), after, 10)
		equal(t, len(entries), err, len(want[from:]))
	}
}

// testTold stores confirmations, also one of an earlier entry. The store must return the last one.
func testTold(t *testing.T, open Opener) {
	s := open(t, "a")
	check := func(want adminapi.Head, wantHere bool) {
		t.Helper()
		got, here, err := s.Told(t.Context())
		if err != nil || got != want || here != wantHere {
			t.Errorf("the confirmed entry: got %v, here: %t, %v; want %v, here: %t", got, here, err, want, wantHere)
		}
	}
	check(adminapi.Head{}, false)
	for _, seq := range []int64{7, 3, 0} {
		head := adminapi.Head{Seq: seq}
		if seq > 0 {
			head.Hash = authapi.Hash("x")
		}
		if err := s.Tell(t.Context(), head); err != nil {
			t.Fatal(err)
		}
		check(head, true)
	}
}
