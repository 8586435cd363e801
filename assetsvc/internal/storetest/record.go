package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/assetsvc/internal/registry"
)

// changeOf returns the record's entry for the change to r. The parameter `before` is the position that the asset had
// before the change.
func changeOf(r registry.Record, before int64) registry.Revision {
	return registry.Revision{ID: r.ID, Revision: r.Revision, Position: r.Position, Before: before,
		Listed: r.Listed, Test: r.Test, Change: r.Change, Whole: r.Whole}
}

// mustNote creates or replaces an asset. It returns the asset, and the record's entry for this change.
func mustNote(t *testing.T, s registry.Store, r registry.Record) (registry.Record, registry.Revision) {
	t.Helper()
	before := r.Position
	if before == 0 {
		r = mustCreate(t, s, r)
	} else {
		r = mustReplace(t, s, r)
	}
	return r, changeOf(r, before)
}

// withoutWhole returns the changes in the form in which a query without Whole returns them.
func withoutWhole(changes []registry.Revision) []registry.Revision {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Whole = nil
	}
	return changes
}

// readLog reads the changes of an asset page by page, and returns them in their order, the oldest first.
func readLog(t *testing.T, s registry.Store, id string, limit int, whole bool) []registry.Revision {
	t.Helper()
	var all []registry.Revision
	for before := int64(0); ; {
		page, err := s.Log(t.Context(), id, registry.LogQuery{Before: before, Limit: limit, Whole: whole})
		if err != nil {
			t.Fatalf("log: %v", err)
		}
		if len(page) > limit {
			t.Fatalf("got %d changes, want at most %d", len(page), limit)
		}
		if len(page) == 0 {
			slices.Reverse(all)
			return all
		}
		all = append(all, page...)
		before = page[len(page)-1].Position
	}
}

// readRecord reads the record page by page, beginning with the first change above the given position.
func readRecord(t *testing.T, s registry.Store, after int64, limit, bytes int) []registry.Revision {
	t.Helper()
	var all []registry.Revision
	more := false
	for {
		q := registry.ChangesQuery{After: after, Limit: limit, Bytes: bytes, Whole: true}
		page, err := s.Changes(t.Context(), q)
		if err != nil {
			t.Fatalf("changes: %v", err)
		}
		if got := len(page.Changes) > 0; len(all) > 0 && got != more {
			t.Fatalf("got a page of %d changes after one with More %t, want them to agree", len(page.Changes), more)
		}
		more = page.More
		if len(page.Changes) == 0 {
			return all
		}
		if last := page.Changes[len(page.Changes)-1]; page.Upto < last.Position || len(page.Changes) > limit {
			t.Fatalf("got %d changes up to %d, complete up to %d; want at most %d, complete up to the last",
				len(page.Changes), last.Position, page.Upto, limit)
		}
		all, after = append(all, page.Changes...), page.Upto
	}
}

func checkChanges(t *testing.T, what string, want, got []registry.Revision) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func testRecord(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	for _, id := range []string{NewID(), "", "x", "ABCDEF00112233445566778899AABBCC"} {
		if _, err := s.Log(t.Context(), id, registry.LogQuery{Limit: 1}); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("log of %q: got %v, want ErrNotFound", id, err)
		}
	}
	if page, err := s.Changes(t.Context(), registry.ChangesQuery{Limit: 1}); err != nil || len(page.Changes) > 0 {
		t.Errorf("changes of an empty store: got %v, %v; want none", page, err)
	}
	var all []registry.Revision
	lives := map[string][]registry.Revision{}
	note := func(r registry.Record) registry.Record {
		r, c := mustNote(t, s, r)
		all, lives[r.ID] = append(all, c), append(lives[r.ID], c)
		r.Change, r.Whole = nil, nil
		return r
	}
	// No other asset of this test has an id between two of these ids. So a faulty read of one asset's changes
	// would also return changes of the next asset.
	ids := []string{strings.Repeat("0", 32), strings.Repeat("0", 31) + "a", strings.Repeat("f", 32)}
	for i, id := range ids {
		r := asset(id, true)
		r.Change = fmt.Appendf(nil, "creation of %s", id)
		r = note(r)
		for revision := 2; revision <= []int{3, 40, 130}[i]; revision++ {
			r.Change, r.Test = fmt.Appendf(nil, "change %d of %s \x00\xff", revision, id), revision%5 == 0
			if revision%7 == 0 {
				r.Change = nil
			}
			if revision%9 == 0 {
				r.Whole = fmt.Appendf(nil, "revision %d of %s", revision, id)
			}
			r = note(r)
		}
		stale := r
		stale.Revision, stale.Change = r.Revision-1, []byte("never made")
		if _, err := s.Replace(t.Context(), stale); !errors.Is(err, registry.ErrStale) {
			t.Errorf("replace an old revision: got %v, want ErrStale", err)
		}
		if _, err := s.Create(t.Context(), stale); !errors.Is(err, registry.ErrExists) {
			t.Errorf("create again: got %v, want ErrExists", err)
		}
		checkStored(t, s, r)
	}
	draft := asset(NewID(), false)
	note(draft)
	check := func(s registry.Store) {
		t.Helper()
		for id, life := range lives {
			checkChanges(t, "the log of "+id, life, readLog(t, s, id, 17, true))
			checkChanges(t, "the log of "+id+" without Whole", withoutWhole(life), readLog(t, s, id, 1000, false))
		}
		checkChanges(t, "the record", all, readRecord(t, s, 0, 37, registry.AnySize))
		rest := len(all) - 20
		checkChanges(t, "the end of the record", all[rest:], readRecord(t, s, all[rest-1].Position, 1000, 1))
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	check(s)
	testRewrite(t, s, all, lives[ids[1]])
	check(s)
	testRecordRace(t, s)
}

// testRewrite rewrites changes of the record. It also updates two lists: the parameter `all` has every change of the
// record, and the parameter `life` has the changes of one asset.
func testRewrite(t *testing.T, s registry.Store, all, life []registry.Revision) {
	t.Helper()
	for _, c := range []struct {
		name          string
		at            int // index of the change to rewrite, in the list life
		change, whole []byte
	}{
		{"a change loses its whole asset", 17, []byte("erased"), nil},
		{"a change gets a whole asset", 18, []byte("another"), []byte("whole")},
		{"a change without content", 13, []byte("erased"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := life[c.at]
			stale := old
			stale.Change = []byte("never made")
			other := old
			other.ID = NewID()
			for _, wrong := range []registry.Revision{stale, other, {ID: "x", Position: old.Position, Change: old.Change}} {
				if done, err := s.Rewrite(t.Context(), wrong, []byte("wrong"), nil); done || err != nil {
					t.Errorf("rewrite of %s at %d, %.20q: got %v, %v; want false", wrong.ID, wrong.Position, wrong.Change, done, err)
				}
			}
			if done, err := s.Rewrite(t.Context(), old, c.change, c.whole); !done || err != nil {
				t.Fatalf("got %v, %v; want true", done, err)
			}
			if done, err := s.Rewrite(t.Context(), old, []byte("again"), nil); done || err != nil {
				t.Errorf("again: got %v, %v; want false", done, err)
			}
			old.Change, old.Whole = c.change, c.whole
			life[c.at] = old
			for i := range all {
				if all[i].Position == old.Position {
					all[i] = old
				}
			}
		})
	}
}

// testRecordRace lets several goroutines change one asset at the same time. The record must have exactly the
// changes that succeeded.
func testRecordRace(t *testing.T, s registry.Store) {
	r, creation := mustNote(t, s, asset(NewID(), true))
	var mu sync.Mutex
	won := []registry.Revision{creation}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				mine, err := s.Get(t.Context(), r.ID, registry.AnySize)
				if err != nil {
					t.Error(err)
					return
				}
				before := mine.Position
				mine.Change = fmt.Appendf(nil, "of racer %d", i)
				position, err := s.Replace(t.Context(), mine)
				if err == nil {
					mine.Position, mine.Revision = position, mine.Revision+1
					mu.Lock()
					won = append(won, changeOf(mine, before))
					mu.Unlock()
				} else if !errors.Is(err, registry.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(won, func(a, b registry.Revision) int { return int(a.Position - b.Position) })
	checkChanges(t, "the log", won, readLog(t, s, r.ID, 100, true))
	record := readRecord(t, s, r.Position-1, 100, registry.AnySize)
	checkChanges(t, "the record", won, record)
}

// followRecord reads the record page by page, until the writers have ended and it has read the newest
// acknowledged change.
func (c *checker) followRecord(ctx context.Context, random *rand.Rand) (record []registry.Revision) {
	var after int64
	var ended time.Time
	for {
		last := c.finished.Load()
		if last && ended.IsZero() {
			ended = time.Now()
		}
		q := registry.ChangesQuery{After: after, Limit: 1 + random.IntN(100), Bytes: registry.AnySize}
		page, err := c.store.Changes(ctx, q)
		if err != nil {
			c.violation("changes: %v", err)
			return record
		}
		c.count(1, len(page.Changes))
		for _, r := range page.Changes {
			if r.Position <= after || r.Position > page.Upto {
				c.violation("R2: the record has %d after %d on a page up to %d", r.Position, after, page.Upto)
			}
			after = r.Position
		}
		record = append(record, page.Changes...)
		after = max(after, page.Upto)
		if len(page.Changes) > 0 {
			continue
		}
		if last && (after >= c.newest() || time.Since(ended) > c.load.Patience) {
			return record
		}
		time.Sleep(5 * patiencePause)
	}
}

// newest returns the highest acknowledged position.
func (c *checker) newest() (newest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.acks {
		newest = max(newest, a.position)
	}
	return newest
}

// checkRecord checks R1 and R2 for the record that a follower has read. The record must have each acknowledged
// change. The changes of an asset must be a chain: the field Before of each change is the position of the change
// before it, and the last change has the position of the stored asset. So no change is missing, and the record has no
// change that was not made. A later read must return the same record.
func (c *checker) checkRecord(ctx context.Context, record []registry.Revision) {
	at, ends := map[int64]string{}, map[string]int64{}
	for _, r := range record {
		if before := ends[r.ID]; r.Before != before {
			c.violation("R1: the change of %s at %d was made from %d, but the change before is at %d", r.ID, r.Position,
				r.Before, before)
		}
		at[r.Position], ends[r.ID] = r.ID, r.Position
	}
	for _, a := range c.acks {
		if at[a.position] != a.id {
			c.violation("R1: the acknowledged change of %s at %d is not in the record", a.id, a.position)
		}
	}
	for _, a := range c.assets {
		if now, err := c.store.Get(ctx, a.ID, registry.AnySize); err == nil && now.Position != ends[a.ID] {
			c.violation("R1: %s is at %d, but its last change in the record is at %d", a.ID, now.Position, ends[a.ID])
		}
	}
	var again []registry.Revision
	for after := int64(0); len(again) < len(record); {
		q := registry.ChangesQuery{After: after, Limit: 1000, Bytes: registry.AnySize}
		page, err := c.store.Changes(ctx, q)
		if err != nil || len(page.Changes) == 0 {
			c.violation("changes after %d: got %d changes, %v; want more", after, len(page.Changes), err)
			return
		}
		again, after = append(again, page.Changes...), page.Upto
	}
	if diff := cmp.Diff(record, again[:len(record)], cmpopts.EquateEmpty()); diff != "" {
		c.violation("R2: the record differs from the one before (-before +now):\n%s", diff)
	}
	c.count(0, 3*len(record)+len(c.acks)+len(c.assets))
}
