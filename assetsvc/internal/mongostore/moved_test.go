package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/event"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// hold opens a batch as another process would. The batch holds back the horizon until the caller calls the function
// `release`.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	f := feedStore{database: s.db}
	first := time.Now().UnixMicro() + 2_000_000 // above all positions that were given out so far
	none := registry.Record{ID: storetest.NewID(), Body: body}
	b := feed.Batch{First: first, IDs: []string{none.ID}}
	writes := []feed.Write{{ID: none.ID, Position: first, Document: none}}
	if _, opened, err := f.Open(t.Context(), "stalled", b, writes); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
	}
	return func() {
		expect.Try(t, f.Close(t.Context(), "stalled", first))
	}
}

func mustChange(t *testing.T, s *Store, id string, change func(*registry.Record)) registry.Record {
	t.Helper()
	r, err := s.Get(t.Context(), id, registry.AnySize)
	expect.OK(t, err)
	change(&r)
	r.Position, err = s.Replace(t.Context(), r)
	expect.OK(t, err)
	return r
}

// walk reads the whole list page by page, and returns its entries in the order of their positions.
func walk(t *testing.T, s *Store, q registry.Query) (all []registry.Entry) {
	t.Helper()
	for {
		page := expect.Get(s.Page(t.Context(), q))(t)
		if len(page.Entries) == 0 {
			break
		}
		all = append(all, page.Entries...)
		q.Offset = page.Entries[len(page.Entries)-1].Position
	}
	if q.Descending {
		slices.Reverse(all)
	}
	return all
}

// entry returns the entry that a page must have for a record. The parameter `moved` says whether the asset has changed
// since the position of the record. The parameter `bodies` is the value of Query.Bodies.
func entry(r registry.Record, moved bool, bodies int) registry.Entry {
	e := registry.Entry{ID: r.ID, Position: r.Position, Test: r.Test, Moved: moved}
	if bodies > 0 && !moved {
		e.Body = r.Body
	}
	return e
}

// TestNoAssetVanishesWhileABatchIsOpen changes assets and publishes a draft while the batch of another process
// holds back the horizon. Some assets change twice, and one changes its mode. The list must have all of them.
// Promises: feed-whole
func TestNoAssetVanishesWhileABatchIsOpen(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "moved"), Options{Lease: time.Hour})
	var before []registry.Record
	for i := range 6 {
		r := registry.Record{ID: storetest.NewID(), Listed: i != 1, Test: i == 2, Revision: 1}
		r.Body = fmt.Appendf(nil, `{"n":%d}`, i)
		var err error
		r.Position, err = s.Create(t.Context(), r)
		expect.OK(t, err)
		before = append(before, r)
	}
	release := hold(t, s)
	changed := map[int]registry.Record{}
	for _, i := range []int{0, 3, 0, 0, 1, 2, 1} {
		changed[i] = mustChange(t, s, before[i].ID, func(r *registry.Record) {
			r.Listed, r.Test = true, false // the draft is published, and the test asset becomes a real one
			r.Body = append(slices.Clone(r.Body), ' ')
		})
	}
	for _, mode := range []registry.Mode{registry.Real, registry.Test, registry.All} {
		for _, q := range []registry.Query{
			{Limit: 100}, {Limit: 1}, {Limit: 2}, {Limit: 100, Bodies: 1000}, {Limit: 100, Bodies: 1}, {Limit: 1, Bodies: 1000},
		} {
			for _, q.Descending = range []bool{false, true} {
				q.Mode = mode
				var want []registry.Entry
				for i, r := range before {
					_, moved := changed[i]
					if r.Listed && (mode == registry.All || r.Test == (mode == registry.Test)) {
						want = append(want, entry(r, moved, q.Bodies))
					}
				}
				expect.NoDiff(t, cmp.Diff(want, walk(t, s, q)), "%+v: the list differs", q)
			}
		}
	}
	release()
	var want []registry.Entry
	for _, i := range []int{4, 5, 3, 0, 2, 1} {
		r, moved := changed[i]
		if !moved {
			r = before[i]
		}
		want = append(want, entry(r, false, 1000))
	}
	got := walk(t, s, registry.Query{Limit: 2, Mode: registry.All, Bodies: 1000})
	expect.NoDiff(t, cmp.Diff(want, got), "after the batch: the list differs")
}

// TestAReaderWithAnOldClockReadsAgain changes an asset twice after a reader has read the clock. By then the
// trail of the asset no longer has the place that the asset had for this clock. The reader must get
// errUnknownPlace, so that it reads the clock again.
func TestAReaderWithAnOldClockReadsAgain(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "old"), Options{Lease: time.Hour})
	r := mustCreate(t, s)
	old := r.Position
	for range 2 {
		mustChange(t, s, r.ID, func(*registry.Record) {})
		if _, err := s.Page(t.Context(), registry.Query{Limit: 1}); err != nil { // learns the new horizon
			t.Fatal(err)
		}
	}
	got, err := s.db.moved(t.Context(), registry.Query{Mode: registry.All}, 0, old, old)
	if err != errUnknownPlace {
		t.Errorf("got %v, %v; want errUnknownPlace", got, err)
	}
	found, err := s.find(t.Context(), r.ID, only("revision", "former"))
	if err != nil || len(found.Former) != 1 {
		t.Errorf("got the former places %v, %v; want one, as the horizon has passed the others", found.Former, err)
	}
}

// TestAPageLooksAtAFewAssetsAboveTheHorizon opens a batch, and changes more assets than a page may look at. A
// page must wait until the batch is closed.
func TestAPageLooksAtAFewAssetsAboveTheHorizon(t *testing.T) {
	counted := make(chan struct{}, 100)
	s := openWith(t, mongotest.Start(t).URI(t, "above"), Options{Lease: time.Hour, Monitor: &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if _, err := e.Command.LookupErr("skip"); err == nil {
				counted <- struct{}{}
			}
		},
	}})
	s.db.mostAbove = 2
	var all []registry.Record
	for range 4 {
		all = append(all, mustCreate(t, s))
	}
	release := hold(t, s)
	for i := range 2 {
		all[i] = mustChange(t, s, all[i].ID, func(*registry.Record) {})
	}
	if got := walk(t, s, registry.Query{Limit: 3}); len(got) != 4 {
		t.Errorf("got %v beside 2 changes, want 4 assets", got)
	}
	all[2] = mustChange(t, s, all[2].ID, func(*registry.Record) {})
	s.patience = 0
	if got, err := s.Page(t.Context(), registry.Query{Limit: 3}); !errors.Is(err, errManyAbove) {
		t.Errorf("got %v, %v beside 3 changes; want errManyAbove", got, err)
	}
	for len(counted) > 0 {
		<-counted
	}
	s.patience = time.Hour
	go func() {
		for range 2 { // the page looks twice, and waits between the two looks
			<-counted
		}
		release()
	}()
	var want []registry.Entry
	for _, i := range []int{3, 0, 1, 2} {
		want = append(want, entry(all[i], false, 0))
	}
	expect.NoDiff(t, cmp.Diff(want, walk(t, s, registry.Query{Limit: 3})), "once the batch is closed: the list differs")
}

// ofPage marks the context of a page. The store's other queries have other contexts.
type ofPage struct{}

// TestAnAssetMovesWhileAPageIsRead reads pages with one asset. Another process changes the asset while the page is
// read: before the first query for assets, before the second one, and so on. Each page must have the asset at the
// position that it had before.
// Promises: feed-whole
func TestAnAssetMovesWhileAPageIsRead(t *testing.T) {
	queries, at := 0, 0 // the asset changes before the query whose number is `at`
	var change func()
	uri := mongotest.Start(t).URI(t, "while")
	other := openWith(t, uri, Options{Lease: time.Hour})
	s := openWith(t, uri, Options{Lease: time.Hour, Monitor: &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			of, _ := e.Command.Lookup("find").StringValueOK()
			if ctx.Value(ofPage{}) == nil || of != other.db.assets.Name() {
				return
			}
			if queries++; queries == at {
				change()
			}
		},
	}})
	r := mustCreate(t, other)
	ctx := context.WithValue(t.Context(), ofPage{}, true)
	for at = 1; ; at++ {
		before := r
		queries, change = 0, func() { r = mustChange(t, other, r.ID, func(*registry.Record) {}) }
		page, err := s.Page(ctx, registry.Query{Limit: 10, Bodies: 10_000})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Position != before.Position {
			t.Errorf("changed before query %d: got %+v, %v; want the asset at %d", at, page.Entries, err, before.Position)
		}
		if queries < at { // the asset has changed before each query of a page
			break
		}
	}
	if queries < 2 {
		t.Errorf("got a page with %d queries, want two or more", queries)
	}
}

// TestAPageHasAnAssetOnceThatMovesWhileItIsRead merges the two lists of a page. Both lists have the same asset,
// at different positions. The page must have the asset once.
func TestAPageHasAnAssetOnceThatMovesWhileItIsRead(t *testing.T) {
	found := []document{{ID: "a", Position: 1}}
	b := document{ID: "b", Position: 2, moved: true}
	moved := []document{{ID: "a", Position: 1, moved: true}, b, b}
	got := merge(registry.Query{Limit: 10}, found, moved)
	if len(got) != 2 || got[0].ID != "a" || got[0].moved || got[1].ID != "b" {
		t.Errorf("got %v, want a as it was found, and b once", got)
	}
}
