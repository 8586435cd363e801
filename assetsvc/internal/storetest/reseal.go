package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
)

func testReseal(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	sealed, ok := s.(registry.SealedStore)
	if !ok {
		t.Fatalf("got a %T, want a registry.SealedStore", s)
	}
	var want []registry.Sealed
	for i := range 5 {
		r := mustCreate(t, s, asset(fmt.Sprintf("%032x", i), i%2 == 0))
		want = append(want, registry.Sealed{ID: r.ID, Sealed: r.Sealed})
	}
	var got []registry.Sealed
	for after := ""; ; {
		page, err := sealed.SealedAfter(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1].ID
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the token records differ (-want +got):\n%s", diff)
	}
	before, err := s.Get(t.Context(), want[2].ID, registry.AnySize)
	if err != nil {
		t.Fatal(err)
	}
	const anew, other = "sealed anew, and longer than before", "another record"
	for _, c := range []struct {
		old  registry.Sealed
		anew string
	}{
		{want[2], anew},
		{registry.Sealed{ID: before.ID, Sealed: other}, other}, // not the token record of the asset
		{registry.Sealed{ID: NewID(), Sealed: other}, other},   // the id of no asset
	} {
		if err := sealed.Reseal(t.Context(), c.old, registry.Sealed{ID: before.ID, Sealed: c.anew}); err != nil {
			t.Fatal(err)
		}
	}
	before.Sealed = anew
	checkStored(t, s, before)
	mustReplace(t, s, before) // Replace works, because the revision has not changed
}
