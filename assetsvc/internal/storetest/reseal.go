package storetest

import (
	"fmt"
	"reflect"
	"testing"

	"asset-registry/assetsvc/internal/registry"
)

func testReseal(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	sealed, ok := s.(registry.SealedStore)
	if !ok {
		t.Fatal("the store is no registry.SealedStore")
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
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	before, err := s.Get(t.Context(), want[2].ID, registry.AnySize)
	if err != nil {
		t.Fatal(err)
	}
	anew := registry.Sealed{ID: before.ID, Sealed: "sealed anew, and longer than before"}
	late := registry.Sealed{ID: before.ID, Sealed: "another"} // of a record that is not the asset's any more
	for _, old := range []registry.Sealed{want[2], {ID: before.ID, Sealed: late.Sealed}, {ID: NewID(), Sealed: late.Sealed}} {
		if err := sealed.Reseal(t.Context(), old, anew); err != nil {
			t.Fatal(err)
		}
		anew.Sealed = late.Sealed
	}
	before.Sealed = "sealed anew, and longer than before"
	if after, err := s.Get(t.Context(), before.ID, registry.AnySize); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("got %+v, %v; want %+v", after, err, before)
	}
	mustReplace(t, s, before) // whoever read it before may go on
}
