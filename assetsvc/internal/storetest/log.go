package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/assetsvc/internal/registry"
)

// checkLog compares the log of an asset with want, which starts with the oldest
// change.
func checkLog(t *testing.T, s registry.Store, id string, want []registry.Revision) {
	t.Helper()
	got, err := s.Log(t.Context(), id)
	if err != nil {
		t.Fatalf("log: %v", err)
	}
	slices.Reverse(got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the log of %s differs (-want +got):\n%s", id, diff)
	}
}

func testLog(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	for _, id := range []string{NewID(), "", "x", "ABCDEF00112233445566778899AABBCC"} {
		if _, err := s.Log(t.Context(), id); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("log of %q: got %v, want ErrNotFound", id, err)
		}
	}
	ids := []string{strings.Repeat("0", 32), strings.Repeat("0", 31) + "a", strings.Repeat("f", 32)}
	revisions := []int64{3, registry.MaxLog, registry.MaxLog + 20}
	kept := map[string][]registry.Revision{} // oldest first
	keep := func(r registry.Record) {
		if len(r.Change) > 0 {
			kept[r.ID] = append(kept[r.ID],
				registry.Revision{Revision: r.Revision, Position: r.Position, Change: r.Change})
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
				r.Change = nil // the log leaves this revision out
			}
			r = mustReplace(t, s, r)
			keep(r)
		}
		kept[id] = slices.DeleteFunc(kept[id], func(k registry.Revision) bool {
			return k.Revision <= r.Revision-registry.MaxLog
		})
		stale := r
		stale.Revision, stale.Change = r.Revision-1, []byte("never made")
		if _, err := s.Replace(t.Context(), stale); !errors.Is(err, registry.ErrStale) {
			t.Errorf("replace an old revision: got %v, want ErrStale", err)
		}
		if _, err := s.Create(t.Context(), stale); !errors.Is(err, registry.ErrExists) {
			t.Errorf("create again: got %v, want ErrExists", err)
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

// testLogRace lets several goroutines change one asset at once. The log must have
// exactly the changes that succeeded.
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
					won = append(won, registry.Revision{Revision: mine.Revision + 1, Position: position,
						Change: mine.Change})
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
