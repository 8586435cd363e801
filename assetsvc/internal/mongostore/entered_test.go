package mongostore

import (
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// TestGetTellsWhereAnAssetEnteredItsList publishes a draft while a batch is open, and changes
// it again.
func TestGetTellsWhereAnAssetEnteredItsList(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "entered"), Options{Lease: time.Hour})
	draft := registry.Record{ID: storetest.NewID(), Revision: 1, Body: body}
	var err error
	if draft.Position, err = s.Create(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want int64) {
		t.Helper()
		for _, most := range []int{registry.AnySize, 10_000} {
			r, err := s.Get(t.Context(), draft.ID, most)
			if err != nil || r.Entered != want {
				t.Errorf("%s: got %d, %v; want %d", when, r.Entered, err, want)
			}
		}
	}
	check("a draft", 0)
	release := hold(t, s)
	published := mustChange(t, s, draft.ID, func(r *registry.Record) { r.Listed = true })
	check("published", published.Position)
	mustChange(t, s, draft.ID, func(r *registry.Record) { r.Body = append(r.Body, ' ') })
	check("changed since", published.Position)
	test := mustChange(t, s, draft.ID, func(r *registry.Record) { r.Test = true })
	check("in another list", test.Position)
	release()
	if _, err := s.Page(t.Context(), registry.HorizonQuery()); err != nil { // the process learns the horizon
		t.Fatal(err)
	}
	check("once the horizon has passed", 0)
}
