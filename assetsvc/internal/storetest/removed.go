package storetest

import (
	"errors"
	"testing"

	"asset-registry/assetsvc/internal/registry"
)

// testRemoved removes a draft. No method may return the draft any more, but its id must stay taken, and the
// record must keep its changes, even after a restart.
func testRemoved(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	draft, other := owned("one", false, false), owned("one", false, false)
	draft.Origin = "where it came from"
	draft, other = mustCreate(t, s, draft), mustCreate(t, s, other)
	grave := registry.Record{
		ID: draft.ID, Revision: draft.Revision, Position: draft.Position, Former: "one", Origin: draft.Origin,
		Removed: true, Body: []byte{}, Change: []byte("removed"),
	}
	removed := mustReplace(t, s, grave)
	check := func(doing string) {
		t.Helper()
		for _, most := range []int{0, 100, registry.AnySize} {
			got, err := s.Get(t.Context(), draft.ID, most)
			if !errors.Is(err, registry.ErrRemoved) || !errors.Is(err, registry.ErrNotFound) || got.ID != draft.ID ||
				got.Origin != draft.Origin || got.Body != nil {
				t.Errorf("%s: get up to %d: got %+v, %v; want the id, the origin and ErrRemoved", doing, most, got, err)
			}
		}
		if got, err := s.Look(t.Context(), draft.ID, 0, nil); !errors.Is(err, registry.ErrRemoved) || got.ID != draft.ID {
			t.Errorf("%s: look: got %+v, %v; want the id and ErrRemoved", doing, got, err)
		}
		if log, err := s.Log(t.Context(), draft.ID, registry.LogQuery{Limit: 10}); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s: log: got %v, %v; want ErrNotFound", doing, log, err)
		}
		if _, err := s.Create(t.Context(), draft); !errors.Is(err, registry.ErrExists) {
			t.Errorf("%s: create: got %v, want ErrExists", doing, err)
		}
		if _, err := s.Replace(t.Context(), draft); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s: replace: got %v, want ErrNotFound", doing, err)
		}
		checkEntries(t, mustPage(t, s, registry.Query{Owner: "one", Mode: registry.All, Limit: 10}), other)
		checkEntries(t, mustPage(t, s, registry.Query{Mode: registry.All, Limit: 10}))
		page, err := s.Changes(t.Context(), registry.ChangesQuery{Limit: 10, Bytes: registry.AnySize})
		if err != nil || len(page.Changes) != 3 || page.Changes[2].ID != draft.ID || page.Changes[2].Revision != 2 ||
			page.Changes[2].Position != removed.Position || string(page.Changes[2].Change) != "removed" {
			t.Errorf("%s: the record: got %+v, %v; want 3 changes, the removal last", doing, page.Changes, err)
		}
	}
	check("after the removal")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	check("after a restart")
}
