package storetest

import (
	"fmt"
	"sync"
	"testing"

	"asset-registry/assetsvc/internal/registry"
)

// Refer creates a draft of the broker "one" under a reference of this broker, and returns the draft's id. If the
// parameter `removed` is true, it also removes the draft.
func Refer(t *testing.T, s registry.Store, reference string, removed bool) string {
	t.Helper()
	if _, err := s.NextNumber(t.Context(), "2026-11-20"); err != nil {
		t.Fatal(err)
	}
	draft := owned("one", false, false)
	draft.Origin = fmt.Sprintf(`{"broker":"one","reference":%q}`, reference)
	id, err := s.ClaimReference(t.Context(), registry.ReferenceKey("one", reference), "", draft.ID)
	if err != nil || id != draft.ID {
		t.Fatalf("claim %s: got %s, %v; want %s", reference, id, err, draft.ID)
	}
	draft = mustCreate(t, s, draft)
	if removed {
		mustReplace(t, s, registry.Record{ID: draft.ID, Revision: draft.Revision, Position: draft.Position, Former: "one",
			Origin: draft.Origin, Removed: true, Body: []byte{}, Change: []byte("removed")})
	}
	return draft.ID
}

// testReferences claims references, and then gives one of them another id. Finally, several callers claim the same
// reference at the same time. All of them must get the same id.
func testReferences(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	claim := func(key, from, to, want string) {
		t.Helper()
		if got, err := s.ClaimReference(t.Context(), key, from, to); err != nil || got != want {
			t.Errorf("claim %.4s from %.4s to %.4s: got %.4s, %v; want %.4s", key, from, to, got, err, want)
		}
	}
	one, other := registry.ReferenceKey("one", "r"), registry.ReferenceKey("one", "r ")
	a, b, c := NewID(), NewID(), NewID()
	claim(one, "", "", "") // reads only
	claim(one, "", a, a)
	claim(one, "", "", a)
	claim(one, "", b, a)
	claim(other, "", b, b)
	claim(one, c, b, a)
	claim(one, a, c, c)
	claim(one, a, b, c)

	raced := registry.ReferenceKey("two", "r")
	ids := make([]string, 8)
	var racing sync.WaitGroup
	for i := range ids {
		racing.Go(func() {
			var err error
			if ids[i], err = s.ClaimReference(t.Context(), raced, "", NewID()); err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("claims at once: got %v, want one id", ids)
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	claim(one, "", a, c)
	claim(raced, "", a, ids[0])

	listed := owned("one", false, false)
	listed.Origin = "where it came from"
	listed = mustCreate(t, s, listed)
	page := mustPage(t, s, registry.Query{Owner: "one", Mode: registry.All, Limit: 1, Bodies: registry.AnySize})
	if len(page) != 1 || page[0].Origin != listed.Origin {
		t.Errorf("got the page %+v, want the origin %q", page, listed.Origin)
	}
	page = mustPage(t, s, registry.Query{Owner: "one", Mode: registry.All, Limit: 1})
	if len(page) != 1 || page[0].Origin != "" {
		t.Errorf("without bodies: got the page %+v, want no origin", page)
	}
}
