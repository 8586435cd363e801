package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

// owned returns a new asset with this owner.
func owned(owner string, listed, test bool) registry.Record {
	r := asset(NewID(), listed)
	r.Owner, r.Test, r.State = owner, test, "draft"
	if listed {
		r.State = "pending"
	}
	return r
}

// replaced returns a record for Replace. This record gives the stored asset `r` a new owner.
func replaced(r registry.Record, owner string) registry.Record {
	r.Former, r.Owner = r.Owner, owner
	return r
}

// testOwners reads the lists of two brokers after different changes of assets and of their owners. The name of
// one broker is the beginning of the other broker's name, but the lists must not mix.
func testOwners(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	draft, real := mustCreate(t, s, owned("one", false, false)), mustCreate(t, s, owned("one", true, false))
	test := mustCreate(t, s, owned("one", true, true))
	other, nobody := mustCreate(t, s, owned("one more", true, false)), mustCreate(t, s, asset(NewID(), true))
	list := func(q registry.Query, want ...registry.Record) {
		t.Helper()
		q.Limit = max(q.Limit, 1)
		checkEntries(t, mustPage(t, s, q), want...)
	}
	all := registry.Query{Owner: "one", Mode: registry.All, Limit: 10}
	list(all, draft, real, test)
	list(registry.Query{Owner: "one", Mode: registry.All, Limit: 10, Descending: true}, test, real, draft)
	list(registry.Query{Owner: "one", Mode: registry.All, Limit: 1}, draft)
	list(registry.Query{Owner: "one", Mode: registry.All, Limit: 1, Offset: draft.Position}, real)
	list(registry.Query{Owner: "one", Mode: registry.All, Limit: 5, Offset: test.Position, Descending: true}, real, draft)
	list(registry.Query{Owner: "one", Mode: registry.Test, Limit: 10}, test)
	list(registry.Query{Owner: "one", Mode: registry.Real, Limit: 10}, draft, real)
	list(registry.Query{Owner: "one", Mode: registry.All, State: "draft", Limit: 10}, draft)
	list(registry.Query{Owner: "one", Mode: registry.All, State: "pending", Limit: 1, Offset: real.Position}, test)
	list(registry.Query{Owner: "one", Mode: registry.Test, State: "draft", Limit: 10})
	list(registry.Query{Owner: "one more", Mode: registry.All, Limit: 10}, other)
	list(registry.Query{Owner: "nobody", Mode: registry.All, Limit: 10})
	list(registry.Query{Mode: registry.All, Limit: 10}, real, test, other, nobody)

	page, err := s.Page(t.Context(), registry.Query{Owner: "one", Mode: registry.All, Limit: 10, Bodies: 1 << 20})
	if err != nil || len(page.Entries) != 3 || string(page.Entries[0].Body) != string(draft.Body) ||
		page.Upto < nobody.Position {
		t.Errorf("got %+v, %v; want 3 entries with bodies, complete up to %d", page, err, nobody.Position)
	}
	changed := replaced(draft, "one")
	changed.Listed, changed.State = true, "pending"
	draft = mustReplace(t, s, changed)
	list(all, real, test, draft)
	real = mustReplace(t, s, replaced(real, "one more"))
	list(all, test, draft)
	list(registry.Query{Owner: "one more", Mode: registry.All, Limit: 10}, other, real)
	real = mustReplace(t, s, replaced(real, "one"))
	list(all, test, draft, real)
	list(registry.Query{Owner: "one more", Mode: registry.All, Limit: 10}, other)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	list(all, test, draft, real)
}

// ownWalks is the number of walks that testOwnWalks makes. ownAssets is the number of assets in the list.
const ownWalks, ownAssets = 6, 12

// testOwnWalks walks along the list of a broker while all of the broker's assets change. Each walk must find all
// these assets.
func testOwnWalks(t *testing.T, open Opener) {
	s := open(t, "a", time.Now)
	var ids []string
	for range ownAssets {
		ids = append(ids, mustCreate(t, s, owned("one", false, false)).ID)
	}
	done := make(chan struct{})
	var writing sync.WaitGroup
	for w := range 3 {
		writing.Go(func() {
			for i := w; ; i += 3 {
				select {
				case <-done:
					return
				default:
				}
				r, err := s.Get(t.Context(), ids[i%ownAssets], registry.AnySize)
				if err == nil {
					r.Owner, r.Former, r.State = "one", "one", "draft"
					_, err = s.Replace(t.Context(), r)
				}
				if err != nil {
					t.Errorf("change: %v", err)
					return
				}
			}
		})
	}
	for walk := range ownWalks {
		found, err := walkOwn(t, s)
		if err != nil {
			t.Error(err)
			break
		}
		for _, id := range ids {
			if !found[id] {
				t.Errorf("walk %d: got no asset %s, want all %d", walk, id, ownAssets)
			}
		}
	}
	close(done)
	writing.Wait()
}

// walkOwn returns the ids on all pages of the list of the broker "one". New entries may come at the end during
// the walk.
func walkOwn(t *testing.T, s registry.Store) (map[string]bool, error) {
	found := map[string]bool{}
	for offset := int64(0); ; {
		page, err := s.Page(t.Context(), registry.Query{Owner: "one", Mode: registry.All, Limit: 5, Offset: offset})
		if err != nil || len(page.Entries) == 0 {
			return found, err
		}
		if !slices.IsSortedFunc(page.Entries, func(a, b registry.Entry) int { return int(a.Position - b.Position) }) ||
			page.Entries[0].Position <= offset {
			return found, fmt.Errorf("got the page %+v after %d, want rising positions", page.Entries, offset)
		}
		for _, e := range page.Entries {
			found[e.ID] = true
		}
		if len(found) == ownAssets && offset > 0 {
			return found, nil // all are found; while assets change, the list has no end
		}
		offset = page.Entries[len(page.Entries)-1].Position
	}
}
