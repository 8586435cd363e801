package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/assetsvc/internal/registry"
)

// RangeStore is a store that can return its assets in the order of their ids.
type RangeStore interface {
	registry.Store
	// Range returns listed assets in the order of their ids. Each asset is as it was after its last acknowledged
	// change, or a later one. Range looks at no more than q.Limit assets. On a page that is not the last, the field
	// Next is above all ids that Range has looked at.
	Range(ctx context.Context, q registry.RangeQuery) (registry.RangePage, error)
}

// RangeOpener is an Opener that opens a RangeStore.
type RangeOpener func(t *testing.T, name string, now func() time.Time) RangeStore

// RunRange checks that a store keeps the contract of RangeStore.
func RunRange(t *testing.T, open RangeOpener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, RangeOpener)
	}{
		{"ranges have all listed assets in the order of ids", testRange},
		{"a range ends before its bodies are too large", testLargeRange},
		{"the horizon is the newest position of a quiet store", testHorizon},
		{"calls with an ended context fail", testCancelledRange},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// walk reads all pages. It returns all entries, and the number of pages.
func walk(
	ctx context.Context, s RangeStore, from string, limit, bytes int,
) (all []registry.Entry, pages int, err error) {
	for {
		page, err := s.Range(ctx, registry.RangeQuery{From: from, Limit: limit, Bytes: bytes})
		if err != nil {
			return nil, 0, err
		}
		pages++
		all = append(all, page.Entries...)
		if page.Next == "" {
			return all, pages, nil
		}
		if page.Next <= from || len(page.Entries) > 0 && page.Next <= page.Entries[len(page.Entries)-1].ID {
			return nil, 0, fmt.Errorf("the page from %q has %d entries and goes on at %q", from, len(page.Entries), page.Next)
		}
		from = page.Next
	}
}

func byID(a, b registry.Entry) int { return cmp.Compare(a.ID, b.ID) }

func testRange(t *testing.T, open RangeOpener) {
	s := open(t, "r", at(start))
	if page, err := s.Range(t.Context(), registry.RangeQuery{Limit: 10, Bytes: 10}); err != nil || page.Next != "" {
		t.Errorf("an empty store: got %v, %v; want an empty last page", page, err)
	}
	var want []registry.Entry
	for i := range 30 {
		r := asset(NewID(), i%3 > 0)
		switch i {
		case 3:
			r.ID = strings.Repeat("0", 32)
		case 4:
			r.ID, r.Listed = strings.Repeat("f", 32), true
		case 5:
			r.Test = true
		}
		r = mustCreate(t, s, r)
		if i%5 == 0 {
			r.Body = []byte(`{"changed":true}`)
			r = mustReplace(t, s, r)
		}
		if r.Listed {
			want = append(want, registry.Entry{ID: r.ID, Position: r.Position, Body: r.Body})
		}
	}
	slices.SortFunc(want, byID)
	for _, c := range []struct {
		name  string
		from  string
		limit int
		bytes int
		want  []registry.Entry
		pages int // least number of pages
	}{
		{"one page", "", 100, registry.AnySize, want, 1},
		{"pages of seven", "", 7, registry.AnySize, want, 5},
		{"pages of one", "", 1, registry.AnySize, want, 30},
		{"pages of one byte", "", 100, 1, want, len(want)},
		{"from an asset", want[7].ID, 4, registry.AnySize, want[7:], 1},
		{"after an asset", registry.NextID(want[7].ID), 4, registry.AnySize, want[8:], 1},
		{"from the last id", strings.Repeat("f", 32), 4, registry.AnySize, want[len(want)-1:], 1},
	} {
		got, pages, err := walk(t.Context(), s, c.from, c.limit, c.bytes)
		if err != nil || pages < c.pages {
			t.Errorf("%s: got %d pages and %v, want at least %d", c.name, pages, err, c.pages)
		}
		if d := diff.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: the entries differ (-want +got):\n%s", c.name, d)
		}
	}
}

func testLargeRange(t *testing.T, open RangeOpener) {
	s := open(t, "r", at(start))
	for i, size := range []int{100, 10, 20, 30, 40} {
		r := asset(fmt.Sprintf("%032d", i), true)
		r.Body = slices.Repeat([]byte("x"), size)
		mustCreate(t, s, r)
	}
	var got [][]int
	for from := ""; ; {
		page, err := s.Range(t.Context(), registry.RangeQuery{From: from, Limit: 10, Bytes: 60})
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, e := range page.Entries {
			sizes = append(sizes, len(e.Body))
		}
		got = append(got, sizes)
		if from = page.Next; from == "" {
			break
		}
	}
	if d := diff.Diff([][]int{{100}, {10, 20, 30}, {40}}, got); d != "" {
		t.Errorf("the pages of at most 60 bytes differ (-want +got):\n%s", d)
	}
}

// Horizon returns the horizon of a store: the position up to which every change is stored.
func Horizon(ctx context.Context, s registry.Store) (int64, error) {
	page, err := s.Page(ctx, registry.HorizonQuery())
	return page.Upto, err
}

func testHorizon(t *testing.T, open RangeOpener) {
	s := open(t, "r", time.Now)
	if got, err := Horizon(t.Context(), s); err != nil || got != 0 {
		t.Errorf("an empty store: got %d, %v; want 0", got, err)
	}
	for range 3 {
		r := mustCreate(t, s, asset(NewID(), false))
		if got, err := Horizon(t.Context(), s); err != nil || got != r.Position {
			t.Errorf("got %d, %v; want %d", got, err, r.Position)
		}
	}
}

func testCancelledRange(t *testing.T, open RangeOpener) {
	s := open(t, "r", at(start))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Range(ctx, registry.RangeQuery{Limit: 1, Bytes: 1}); err == nil {
		t.Error("range: got no error, want one")
	}
}

// Copy is a copy of the listed assets of a store, as a snapshot has it.
type Copy struct {
	Position int64            // position from which to follow the feed
	Assets   map[string]int64 // positions of the assets; the keys are ids
}

// CheckSnapshot makes several copies of a store while writers create, list and change assets. Before each copy,
// the writers make l.Changes changes. After each copy, CheckSnapshot follows the feed from the copy's position,
// and compares the result with all listed assets (docs/snapshot.md, S1 and S2). It returns the violations.
func CheckSnapshot(
	t *testing.T, s registry.Store, l Load, copies int, makeCopy func(context.Context) (Copy, error),
) []string {
	t.Helper()
	var assets []registry.Record
	for i := range l.Assets {
		assets = append(assets, registry.Record{ID: NewID(), Listed: i%5 != 0, Test: i%4 == 0, Body: []byte(`{}`)})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	var written atomic.Int64
	for i := range l.Writers {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(l.Seed, uint64(i)))
			for ctx.Err() == nil {
				if changeOne(ctx, s, assets[random.IntN(len(assets))], random) {
					written.Add(1)
				}
			}
		})
	}
	var made []Copy
	for range copies {
		for begun := written.Load(); written.Load() < begun+int64(l.Changes); {
			time.Sleep(time.Millisecond) // meanwhile the writers make changes
		}
		c, err := makeCopy(ctx)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, c)
	}
	stop()
	writers.Wait()
	// A write whose context has ended may still be under way. The creation below comes after it.
	if _, err := s.Create(t.Context(), registry.Record{ID: NewID(), Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	var violations []string
	for i, c := range made {
		violations = append(violations, compareCopy(t, s, i, c)...)
	}
	return violations
}

// changeOne creates or changes an asset, and reports whether that has succeeded.
func changeOne(ctx context.Context, s registry.Store, a registry.Record, random *rand.Rand) bool {
	current, err := s.Get(ctx, a.ID, registry.AnySize)
	if err != nil {
		_, err = s.Create(ctx, a)
		return err == nil
	}
	current.Listed = current.Listed || random.IntN(3) == 0
	current.Test = random.IntN(4) == 0
	_, err = s.Replace(ctx, current)
	return err == nil
}

// compareCopy follows the feed from the position of a copy, and compares the result with the whole feed.
func compareCopy(t *testing.T, s registry.Store, number int, c Copy) (violations []string) {
	t.Helper()
	all := mustFollow(t, s, 0)
	for id, position := range mustFollow(t, s, c.Position) {
		c.Assets[id] = position
	}
	for id, position := range all {
		if got := c.Assets[id]; got != position {
			violations = append(violations, fmt.Sprintf("S1: copy %d from %d has asset %s at %d, and the feed has it at %d",
				number, c.Position, id, got, position))
		}
	}
	for id := range c.Assets {
		if _, listed := all[id]; !listed {
			violations = append(violations, fmt.Sprintf("S2: copy %d has asset %s, which is not listed", number, id))
		}
	}
	return violations
}

// mustFollow returns the positions of all assets that the feed has after the given position.
func mustFollow(t *testing.T, s registry.Store, after int64) map[string]int64 {
	t.Helper()
	positions := map[string]int64{}
	for {
		page := mustPage(t, s, registry.Query{Offset: after, Limit: 100, Mode: registry.All})
		if len(page) == 0 {
			return positions
		}
		for _, e := range page {
			positions[e.ID], after = e.Position, e.Position
		}
	}
}
