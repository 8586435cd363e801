package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"asset-registry/assetsvc/internal/registry"
)

func checkLog(t *testing.T, s registry.Store, id string, want []registry.Revision) {
	t.Helper()
	got, err := s.Log(t.Context(), id)
	if err != nil {
		t.Fatalf("log: %v", err)
	}
	slices.Reverse(got)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", id, got, want)
	}
}

func testLog(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	for _, id := range []string{NewID(), "", "x", "ABCDEF00112233445566778899AABBCC"} {
		if _, err := s.Log(t.Context(), id); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("log of %q: got %v, want ErrNotFound", id, err)
		}
	}
	ids := []string{"00000000000000000000000000000000", "0000000000000000000000000000000a", "ffffffffffffffffffffffffffffffff"}
	revisions := []int64{3, registry.MaxLog, registry.MaxLog + 20}
	kept := map[string][]registry.Revision{} // the oldest first
	keep := func(r registry.Record) {
		if len(r.Change) > 0 {
			kept[r.ID] = append(kept[r.ID], registry.Revision{Revision: r.Revision, Position: r.Position, Change: r.Change})
		}
	}
	for i, id := range ids {
		r := asset(id, true)
		r.Change = fmt.Appendf(nil, "creation of %s", id)
		r = mustCreate(t, s, r)
		keep(r)
		for revision := int64(2); revision <= revisions[i]; revision++ {
			r.Change = fmt.Appendf(nil, "change %d of %s \x00\xff", revision, id)
			if revision%7 == 0 {
				r.Change = nil // there is nothing to say of it
			}
			r = mustReplace(t, s, r)
			keep(r)
		}
		kept[id] = slices.DeleteFunc(kept[id], func(k registry.Revision) bool { return k.Revision <= r.Revision-registry.MaxLog })
		stale := r
		stale.Revision, stale.Change = r.Revision-1, []byte("never made")
		if _, err := s.Replace(t.Context(), stale); !errors.Is(err, registry.ErrStale) {
			t.Errorf("got %v, want ErrStale", err)
		}
		if _, err := s.Create(t.Context(), stale); !errors.Is(err, registry.ErrExists) {
			t.Errorf("got %v, want ErrExists", err)
		}
		r.Change = nil
		checkStored(t, s, r)
	}
	for _, id := range ids {
		checkLog(t, s, id, kept[id])
	}
	none := mustCreate(t, s, asset(NewID(), true))
	checkLog(t, s, none.ID, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	for _, id := range ids {
		checkLog(t, s, id, kept[id])
	}
	testLogRace(t, s)
}

// testLogRace has many change one asset at once: the log tells of those who won.
func testLogRace(t *testing.T, s registry.Store) {
	r := mustCreate(t, s, asset(NewID(), true))
	var mu sync.Mutex
	var won []registry.Revision
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				mine, err := s.Get(t.Context(), r.ID, registry.AnySize)
				if err != nil {
					t.Error(err)
					return
				}
				mine.Change = fmt.Appendf(nil, "of racer %d", i)
				position, err := s.Replace(t.Context(), mine)
				if err == nil {
					mu.Lock()
					won = append(won, registry.Revision{Revision: mine.Revision + 1, Position: position, Change: mine.Change})
					mu.Unlock()
				} else if !errors.Is(err, registry.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(won, func(a, b registry.Revision) int { return int(a.Revision - b.Revision) })
	checkLog(t, s, r.ID, won)
}
