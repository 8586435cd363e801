package mongostore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestAssetsOfAFormerProgramGetTheirOwners removes the field `owner` from the stored assets, because an earlier version
// of the program did not store this field. Then it opens the store again. The assets must get their owners. A void
// (a document for an asset that was not created) must not change.
func TestAssetsOfAFormerProgramGetTheirOwners(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "owners")
	o := Options{Owner: func(r registry.Record) (string, error) { return string(r.Body), nil }}
	s := openWith(t, uri, o)
	eventually(t, s.filled.Load, "a store with lists of brokers")
	var want []string
	for i := range 12 {
		owner := []string{"one", "two"}[i%2]
		r := registry.Record{ID: storetest.NewID(), Owner: owner, State: "draft", Body: []byte(owner)}
		expect.Get(s.Create(t.Context(), r))(t)
		if owner == "one" {
			want = append(want, r.ID)
		}
	}
	void := storetest.NewID()
	expect.Get(s.db.assets.InsertOne(t.Context(), document{ID: void, Revision: voidRevision}))(t)
	remove := bson.D{{Key: "$unset", Value: bson.D{{Key: "owner", Value: ""}}}}
	expect.Get(s.db.assets.UpdateMany(t.Context(), bson.D{}, remove))(t)
	list := func(s *Store) []registry.Entry {
		t.Helper()
		page := expect.Get(s.Page(t.Context(), registry.Query{Owner: "one", Mode: registry.All, Limit: 1000}))(t)
		return page.Entries
	}
	if got := list(s); len(got) != 0 {
		t.Errorf("without the field: got %d assets, want none", len(got))
	}
	expect.OK(t, s.Close())
	s = openWith(t, uri, o)
	eventually(t, s.filled.Load, "a store with lists of brokers")
	got := list(s)
	if len(got) != len(want) {
		t.Fatalf("got %d assets, want %d", len(got), len(want))
	}
	for i, e := range got {
		expect.Equal(t, e.ID, want[i], "entry %d", i)
	}
	var found bson.M
	if err := s.db.assets.FindOne(t.Context(), withID(void)).Decode(&found); err != nil || found["owner"] != nil {
		t.Errorf("the void: got %v, %v; want no owner", found, err)
	}
}

// TestNoAssetOfABrokerVanishesWhileABatchIsOpen changes assets, publishes a draft and hands one asset over to
// another broker, while the batch of another process holds back the horizon. The list must have each asset at its
// former place. Only the asset that was handed over must be missing.
func TestNoAssetOfABrokerVanishesWhileABatchIsOpen(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "own"), Options{Lease: time.Hour})
	var before []registry.Record
	for i := range 6 {
		r := registry.Record{
			ID: storetest.NewID(), Owner: "one", Listed: i > 2, Test: i == 2, State: "draft", Revision: 1,
			Body: fmt.Appendf(nil, `{"n":%d}`, i),
		}
		var err error
		r.Position, err = s.Create(t.Context(), r)
		expect.OK(t, err)
		before = append(before, r)
	}
	release := hold(t, s)
	changed := map[int]registry.Record{}
	for _, i := range []int{0, 3, 0, 1, 4} {
		changed[i] = mustChange(t, s, before[i].ID, func(r *registry.Record) {
			r.Owner, r.Former, r.State = "one", "one", "pending"
			r.Listed = r.Listed || i == 1
			if i == 4 {
				r.Owner = "two"
			}
			r.Body = append(slices.Clone(r.Body), ' ')
		})
	}
	for _, q := range []registry.Query{{Limit: 100}, {Limit: 1}, {Limit: 2}, {Limit: 100, Bodies: 1000}} {
		for _, q.Descending = range []bool{false, true} {
			q.Owner, q.Mode = "one", registry.All
			var want []registry.Entry
			for i, r := range before {
				if _, moved := changed[i]; i != 4 {
					want = append(want, entry(r, moved, q.Bodies))
				}
			}
			expect.NoDiff(t, cmp.Diff(want, walk(t, s, q)), "%+v: the list differs", q)
		}
	}
	release()
	var want []registry.Entry
	for _, i := range []int{2, 5, 3, 0, 1} {
		r, moved := changed[i]
		if !moved {
			r = before[i]
		}
		want = append(want, entry(r, false, 1000))
	}
	got := walk(t, s, registry.Query{Owner: "one", Limit: 2, Mode: registry.All, Bodies: 1000})
	expect.NoDiff(t, cmp.Diff(want, got), "after the batch: the list differs")
	if got := walk(t, s, registry.Query{Owner: "two", Limit: 2, Mode: registry.All}); len(got) != 1 {
		t.Errorf("the new owner: got %v, want one asset", got)
	}
}
