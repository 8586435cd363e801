package mongostore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// commands counts the write commands that the driver sends to the database.
type commands struct{ opens, closes, inserts, updates, notes, shows atomic.Int64 }

func (c *commands) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		collection, _ := e.Command.Lookup(e.CommandName).StringValueOK()
		switch {
		case e.CommandName == "update" && collection == "clock" && strings.Contains(e.Command.String(), "$unset"):
			c.closes.Add(1)
		case e.CommandName == "update" && collection == "clock":
			c.opens.Add(1)
		case e.CommandName == "update" && collection == "changes":
			c.shows.Add(1)
		case e.CommandName == "insert" && collection == "changes":
			c.notes.Add(1)
		case e.CommandName == "update":
			c.updates.Add(1)
		case e.CommandName == "insert" && collection == "assets":
			c.inserts.Add(1)
		}
	}}
}

// total counts the round trips that a batch waits for, one after the other. Commands that run at the same time
// count as one round trip. The record is stored while the batch is opened. It is shown while the batch is
// written. Creations and changes are written together.
func (c *commands) total() int64 {
	return c.opens.Load() + c.closes.Load() + max(c.inserts.Load(), c.updates.Load())
}

// TestWritesShareRoundTrips lets 32 clients write at the same time. On average, a batch must have at least four
// changes.
func TestWritesShareRoundTrips(t *testing.T) {
	var counted commands
	s := openWith(t, mongotest.Start(t).URI(t, "tshared"), Options{Monitor: counted.monitor()})
	const clients, each = 32, 4
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				r := mustCreate(t, s)
				if _, err := s.Replace(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	const changes = 2 * clients * each
	opens := counted.opens.Load()
	notes, shows := counted.notes.Load(), counted.shows.Load()
	t.Logf("%d changes in %d batches, %d commands in turn, %d beside them", changes, opens, counted.total(), notes+shows)
	if notes > opens || shows > opens {
		t.Errorf("got %d records stored and %d shown for %d batches, want at most one each", notes, shows, opens)
	}
	inserts, updates, closes := counted.inserts.Load(), counted.updates.Load(), counted.closes.Load()
	if opens > changes/4 || inserts > opens || updates > opens || closes > opens {
		t.Errorf("%d changes: got %d opens, %d inserts, %d updates, %d closes; want at most %d opens, no count above",
			changes, opens, inserts, updates, closes, changes/4)
	}
}

func mustCreate(tb testing.TB, s *Store) registry.Record {
	tb.Helper()
	r := registry.Record{ID: storetest.NewID(), Listed: true, Owner: "one", Sealed: "sealed", Body: body}
	position, err := s.Create(tb.Context(), r)
	expect.Try(tb, err)
	r.Position, r.Revision = position, 1
	return r
}

var body = bytes.Repeat([]byte("x"), 3000)

func openWith(tb testing.TB, uri string, o Options) *Store {
	tb.Helper()
	return openAt(tb, uri, time.Now, o)
}

// TestAFencedIDIsVoid fences an id, and then tries to create and to read an asset with this id. Both must fail.
func TestAFencedIDIsVoid(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "tvoid"), Options{})
	r := registry.Record{ID: storetest.NewID(), Body: body}
	expect.OK(t, (feedStore{database: s.db}).Fence(t.Context(), []string{r.ID}))
	for range 2 {
		expect.ErrOf(t, registry.ErrVoid, "create")(s.Create(t.Context(), r))
	}
	for _, most := range []int{registry.AnySize, registry.MaxAsset} {
		expect.ErrOf(t, registry.ErrNotFound, "get up to %d bytes", most)(s.Get(t.Context(), r.ID, most))
	}
	expect.ErrOf(t, registry.ErrNotFound, "log")(s.Log(t.Context(), r.ID, registry.LogQuery{Limit: 1}))
}

// TestTheLogSkipsRevisionsOfFences fences an asset between its changes. A fence raises the revision, but it is
// not a change, so the log must not have it.
func TestTheLogSkipsRevisionsOfFences(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "tskip"), Options{})
	r := mustCreate(t, s)
	want := []string{"1"}
	for r.Revision < 12 {
		if r.Revision == 3 || r.Revision == 7 {
			expect.OK(t, (feedStore{database: s.db}).Fence(t.Context(), []string{r.ID}))
			r.Revision++
		}
		position := expect.Get(s.Replace(t.Context(), r))(t)
		r.Position, r.Revision = position, r.Revision+1
		want = append(want, fmt.Sprint(r.Revision))
	}
	log := expect.Get(s.Log(t.Context(), r.ID, registry.LogQuery{Limit: 100}))(t)
	var got []string
	for _, l := range slices.Backward(log) {
		got = append(got, fmt.Sprint(l.Revision))
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the log differs")
}

// TestABatchStoresCreationsAndChangesAtOnce stores a batch with two commands, for creations and for changes. It
// holds back the first command until the store sends the second. So the store must send both without waiting
// for an answer.
func TestABatchStoresCreationsAndChangesAtOnce(t *testing.T) {
	var begun atomic.Int64
	both := make(chan struct{})
	s := openWith(t, mongotest.Start(t).URI(t, "once"), Options{Lease: time.Hour, Monitor: &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			in, _ := e.Command.Lookup(e.CommandName).StringValueOK()
			if in != "assets" || e.CommandName != "insert" && e.CommandName != "update" || begun.Load() < 0 {
				return
			}
			if begun.Add(1) == 2 {
				close(both)
			}
			select {
			case <-both:
			case <-time.After(rigTimeout):
			}
		},
	}})
	begun.Store(-1)
	there := mustCreate(t, s)
	begun.Store(0)
	f, newID := feedStore{database: s.db}, storetest.NewID()
	batch := feed.Batch{First: there.Position + 1000, IDs: []string{there.ID, newID}}
	writes := []feed.Write{
		{ID: there.ID, Revision: 1, Before: there.Position, Position: batch.First, Document: there},
		{ID: newID, Position: batch.First + 1, Document: registry.Record{ID: newID, Listed: true, Body: body}},
	}
	if _, opened, err := f.Open(t.Context(), "mixed", batch, writes); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
	}
	if applied, err := f.Write(t.Context(), "mixed", batch, writes); err != nil || applied != 2 || begun.Load() != 2 {
		t.Errorf("got %d writes, %v by %d commands, want 2 by 2 at once", applied, err, begun.Load())
	}
	select {
	case <-both:
	default:
		t.Error("the changes waited for the answer to the creations")
	}
}
