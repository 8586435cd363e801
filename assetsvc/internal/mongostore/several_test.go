package mongostore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// several has the stores of several processes that share one database. Each call goes to one of them, chosen at
// random.
type several []registry.Store

func (s several) any() registry.Store { return s[randtest.IntN(len(s))] }

func (s several) Create(ctx context.Context, r registry.Record) (int64, error) {
	return s.any().Create(ctx, r)
}

func (s several) Replace(ctx context.Context, r registry.Record) (int64, error) {
	return s.any().Replace(ctx, r)
}

func (s several) Get(ctx context.Context, id string, most int) (registry.Record, error) {
	return s.any().Get(ctx, id, most)
}

func (s several) Look(ctx context.Context, id string, most int, see func([]byte) error) (registry.Record, error) {
	return s.any().Look(ctx, id, most, see)
}

func (s several) Page(ctx context.Context, q registry.Query) (registry.FeedPage, error) {
	return s.any().Page(ctx, q)
}

func (s several) NextNumber(ctx context.Context, day string) (int, error) {
	return s.any().NextNumber(ctx, day)
}

func (s several) Log(ctx context.Context, id string, q registry.LogQuery) ([]registry.Revision, error) {
	return s.any().Log(ctx, id, q)
}

func (s several) Changes(ctx context.Context, q registry.ChangesQuery) (registry.ChangesPage, error) {
	return s.any().Changes(ctx, q)
}

func (s several) Rewrite(ctx context.Context, old registry.Revision, change, whole []byte) (bool, error) {
	return s.any().Rewrite(ctx, old, change, whole)
}

func (s several) ClaimReference(ctx context.Context, key, from, to string) (string, error) {
	return s.any().ClaimReference(ctx, key, from, to)
}

func (s several) Ready(ctx context.Context) error { return s.any().Ready(ctx) }
func (s several) Close() error                    { return nil }

func TestTheFeedOfSeveralStores(t *testing.T) {
	server, seed := mongotest.Start(t), randtest.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var stores several
	for range 3 {
		drift := time.Duration(random.IntN(6000)-3000) * time.Millisecond
		stores = append(stores, open(t, server, "several", func() time.Time { return time.Now().Add(drift) }))
	}
	report := storetest.CheckFeed(t, stores, storetest.Load{
		Seed: seed, Writers: 12, Followers: 6, Changes: 500, Assets: 60, Patience: rigTimeout,
	})
	t.Logf("seed %d: %v", seed, report)
	for _, v := range report.Violations {
		t.Error(v)
	}
	if report.Changes < 500 || report.Checks < report.Changes {
		t.Errorf("got %v, want 500 changes and at least as many checks", report)
	}
}

// Promises: assetid
func TestSeveralStoresGiveNoNumberTwice(t *testing.T) {
	server := mongotest.Start(t)
	stores := several{open(t, server, "n", time.Now), open(t, server, "n", time.Now)}
	var seen sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				n, err := stores.NextNumber(t.Context(), "2026-11-21")
				if _, twice := seen.LoadOrStore(n, true); twice || err != nil {
					t.Errorf("got number %d (given before: %v), %v; want a new number", n, twice, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestABatchOfADeadWriterIsFenced opens a batch for a process that then dies. The watcher must fence the batch.
// The writes of that batch arrive later, and must be refused.
func TestABatchOfADeadWriterIsFenced(t *testing.T) {
	const lease = 300 * time.Millisecond
	uri := mongotest.Start(t).URI(t, "fenced")
	s := openWith(t, uri, Options{Lease: lease})
	there, dead := mustCreate(t, s), feedStore{database: s.db}
	newID := storetest.NewID()
	batch := feed.Batch{First: time.Now().UnixMicro() + 1000, IDs: []string{there.ID, newID}}
	late := []feed.Write{
		{ID: there.ID, Revision: 1, Before: there.Position, Position: batch.First, Document: there},
		{ID: newID, Position: batch.First + 1, Document: registry.Record{ID: newID, Listed: true, Body: body}},
	}
	if _, opened, err := dead.Open(t.Context(), "dead", batch, late); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
	}
	after := mustCreate(t, s)
	for end := time.Now().Add(rigTimeout); ; time.Sleep(lease / 10) {
		page := expect.Get(s.Page(t.Context(), registry.Query{Limit: 10}))(t)
		entries := page.Entries
		if len(entries) == 2 && entries[1].ID == after.ID {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got page %v, want the assets without the dead writer's batch", entries)
		}
	}
	expect.Value(t, 0, "late writes")(dead.Write(t.Context(), "dead", batch, late))
	landed, err := dead.Settle(t.Context(), "dead", batch.First)
	if diff := cmp.Diff(map[string]bool{}, landed); err != nil || diff != "" {
		t.Errorf("settle again: got error %v; the landed changes differ (-want +got):\n%s", err, diff)
	}
	page, err := s.Changes(t.Context(), registry.ChangesQuery{Limit: 10, Bytes: registry.AnySize})
	want := []registry.Revision{
		{ID: there.ID, Revision: 1, Position: there.Position, Listed: true},
		{ID: after.ID, Revision: 1, Position: after.Position, Listed: true},
	}
	if diff := cmp.Diff(want, page.Changes); err != nil || diff != "" {
		t.Errorf("got error %v; the record differs (-want +got):\n%s", err, diff)
	}
	expect.ErrOf(t, registry.ErrNotFound, "get a void")(s.Get(t.Context(), newID, registry.AnySize))
	expect.ErrOf(t, registry.ErrVoid, "create under the id of a void")(s.Create(t.Context(),
		registry.Record{ID: newID, Body: body}))
	expect.ErrOf(t, registry.ErrStale, "change with the revision before the fence")(s.Replace(t.Context(), there))
	current := expect.Get(s.Get(t.Context(), there.ID, registry.AnySize))(t)
	expect.NilOf(t, "change with the revision after the fence")(s.Replace(t.Context(), current))
}

// TestABatchOfADeadWriterIsSettled lets a writer die after the store has applied one of its two changes. Once the
// watcher of another process has closed the batch, the record must have only the applied change.
func TestABatchOfADeadWriterIsSettled(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "dead")
	s := openWith(t, uri, Options{Lease: time.Hour})
	there, dead, newID := mustCreate(t, s), feedStore{database: s.db}, storetest.NewID()
	batch := feed.Batch{First: time.Now().UnixMicro() + 1000, IDs: []string{there.ID, newID}}
	writes := []feed.Write{
		{ID: there.ID, Revision: 1, Before: there.Position, Position: batch.First, Document: there},
		{ID: newID, Position: batch.First + 1, Document: registry.Record{ID: newID, Listed: true, Body: body}},
	}
	if _, opened, err := dead.Open(t.Context(), "dead", batch, writes); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
	}
	if applied, err := dead.apply(t.Context(), writes[:1]); err != nil || applied != 1 {
		t.Fatalf("the first write: got %d applied, %v; want 1", applied, err)
	}
	const lease = 300 * time.Millisecond
	openWith(t, uri, Options{Lease: lease}) // its watcher closes the batch
	for end := time.Now().Add(rigTimeout); ; time.Sleep(lease / 10) {
		now := expect.Get(dead.Clock(t.Context()))(t)
		if len(now.Open) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got the open batches %v, want none", now.Open)
		}
	}
	page, err := s.Changes(t.Context(), registry.ChangesQuery{Limit: 10, Bytes: registry.AnySize})
	want := []registry.Revision{
		{ID: there.ID, Revision: 1, Position: there.Position, Listed: true},
		{ID: there.ID, Revision: 2, Position: batch.First, Before: there.Position, Listed: true},
	}
	if diff := cmp.Diff(want, page.Changes); err != nil || diff != "" {
		t.Errorf("got error %v; the record differs (-want +got):\n%s", err, diff)
	}
}

// TestSettleKeepsTheChangesThatWereApplied settles a batch of four changes. The first was applied. The second was
// applied, and another change followed it. The third was refused. The fourth is for an asset that does not exist. The
// record must keep only the first two.
func TestSettleKeepsTheChangesThatWereApplied(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "settle"), Options{Lease: time.Hour})
	f := feedStore{database: s.db}
	applied, followed, refused := mustCreate(t, s), mustCreate(t, s), mustCreate(t, s)
	none := registry.Record{ID: storetest.NewID(), Body: body}
	first := time.Now().UnixMicro() + 1_000_000
	var writes []feed.Write
	b := feed.Batch{First: first}
	for i, r := range []registry.Record{applied, followed, refused, none} {
		writes = append(writes, feed.Write{ID: r.ID, Revision: r.Revision, Before: r.Position,
			Position: first + int64(i), Document: r})
		b.IDs = append(b.IDs, r.ID)
	}
	writes[2].Revision++ // so that its guard does not hold
	if _, opened, err := f.Open(t.Context(), "w", b, writes); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
	}
	if got, err := f.Write(t.Context(), "w", b, writes[:3]); err != nil || got != 2 {
		t.Fatalf("write: got %d, %v; want 2", got, err)
	}
	followed.Revision, followed.Position = 2, first+1
	position, err := s.Replace(t.Context(), followed)
	if err != nil || position <= first+1 {
		t.Fatalf("a change of an asset in an open batch: got %d, %v; want a position above %d", position, err, first+1)
	}
	expect.OK(t, f.Fence(t.Context(), b.IDs))
	for range 2 {
		landed, err := f.Settle(t.Context(), "w", first)
		for id, want := range map[string]bool{applied.ID: true, followed.ID: true, refused.ID: false, none.ID: false} {
			if err != nil || landed[id] != want {
				t.Errorf("settle: got %v, %v for asset %s; want %v", landed[id], err, id, want)
			}
		}
	}
	expect.OK(t, f.Close(t.Context(), "w", first))
	page, err := s.Changes(t.Context(), registry.ChangesQuery{After: first - 1, Limit: 10, Bytes: registry.AnySize})
	want := []registry.Revision{
		{ID: applied.ID, Revision: 2, Position: first, Before: applied.Position, Listed: true},
		{ID: followed.ID, Revision: 2, Position: first + 1, Before: writes[1].Before, Listed: true},
		{ID: followed.ID, Revision: 3, Position: position, Before: first + 1, Listed: true},
	}
	if diff := cmp.Diff(want, page.Changes); err != nil || diff != "" {
		t.Errorf("got error %v; the record differs (-want +got):\n%s", err, diff)
	}
}

// TestARefusedOpenLeavesNoRecord opens a batch at the newest position. The store must refuse the batch, and
// remove its record.
func TestARefusedOpenLeavesNoRecord(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "refused"), Options{})
	r := mustCreate(t, s)
	b := feed.Batch{First: r.Position, IDs: []string{r.ID}}
	writes := []feed.Write{{ID: r.ID, Revision: 1, Before: r.Position, Position: r.Position, Document: r}}
	now, opened, err := (feedStore{database: s.db}).Open(t.Context(), "w", b, writes)
	if err != nil || opened || now.Last != r.Position {
		t.Errorf("got %v, %v, %v; want a refusal at %d", now, opened, err, r.Position)
	}
	s.db.removals.Wait()
	count, err := s.db.changes.CountDocuments(t.Context(), bson.D{})
	if err != nil || count != 1 {
		t.Errorf("got %d records, %v; want only the creation's", count, err)
	}
}

// TestAWriterClosesItsOwnBatch closes the batch that the writer had before, as a message that arrives late may
// do. The current batch must stay open.
func TestAWriterClosesItsOwnBatch(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "closes"), Options{Lease: time.Hour})
	f := feedStore{database: s.db}
	b := feed.Batch{First: time.Now().UnixMicro() + 1_000_000, IDs: []string{storetest.NewID()}}
	if _, opened, err := f.take(t.Context(), "w", b); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
	}
	expect.OK(t, f.Close(t.Context(), "w", b.First-1))
	if now, err := f.Clock(t.Context()); err != nil || now.Open["w"].First != b.First {
		t.Errorf("after the end of the batch before: got %v, %v; want the batch open", now.Open, err)
	}
	expect.OK(t, f.Close(t.Context(), "w", b.First))
	if now, err := f.Clock(t.Context()); err != nil || len(now.Open) > 0 {
		t.Errorf("after its end: got %v, %v; want no open batch", now.Open, err)
	}
}

// TestARecordThatIsNotShownIsNotRead stores the record of a refused batch. In practice, this record stays in the store
// if its removal fails. No reader may see it.
func TestARecordThatIsNotShownIsNotRead(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "hidden"), Options{Lease: time.Hour})
	r := mustCreate(t, s)
	b := feed.Batch{First: r.Position + 1, IDs: []string{r.ID}}
	refused := []feed.Write{{ID: r.ID, Revision: 1, Before: r.Position, Position: b.First, Document: r}}
	expect.OK(t, (feedStore{database: s.db}).note(t.Context(), newRecord("w", b, refused)))
	next := mustCreate(t, s)
	if log, err := s.Log(t.Context(), r.ID, registry.LogQuery{Limit: 10}); err != nil || len(log) != 1 {
		t.Errorf("the log: got %v, %v; want the creation", log, err)
	}
	page, err := s.Changes(t.Context(), registry.ChangesQuery{After: r.Position, Limit: 10, Bytes: registry.AnySize})
	if err != nil || len(page.Changes) != 1 || page.Changes[0].ID != next.ID {
		t.Errorf("the record: got %v, %v; want the second creation", page.Changes, err)
	}
}

// TestASettledRecordOutlivesALateOpen settles a batch whose record has not arrived, closes the batch, and sends the
// batch's Open again. The record that Settle inserted must stay. Otherwise the late record of the first Open would be
// inserted.
func TestASettledRecordOutlivesALateOpen(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "outlives"), Options{Lease: time.Hour})
	f := feedStore{database: s.db}
	r := mustCreate(t, s)
	b := feed.Batch{First: time.Now().UnixMicro() + 1_000_000, IDs: []string{r.ID}}
	writes := []feed.Write{{ID: r.ID, Revision: 1, Before: r.Position, Position: b.First, Document: r}}
	if _, opened, err := f.take(t.Context(), "w", b); err != nil || !opened {
		t.Fatalf("the clock: got %v, %v; want true", opened, err)
	}
	_, settled := f.Settle(t.Context(), "w", b.First)
	expect.OK(t, errors.Join(f.Fence(t.Context(), b.IDs), settled, f.Close(t.Context(), "w", b.First)))
	if _, opened, err := f.Open(t.Context(), "w", b, writes); err != nil || opened {
		t.Errorf("a late Open: got %v, %v; want a refusal", opened, err)
	}
	s.db.removals.Wait()
	expect.OK(t, f.note(t.Context(), newRecord("w", b, writes)))
	page, err := s.Changes(t.Context(), registry.ChangesQuery{After: b.First - 1, Limit: 10, Bytes: registry.AnySize})
	if err != nil || len(page.Changes) > 0 {
		t.Errorf("got %v, %v; want no change that was never made", page.Changes, err)
	}
	expect.OK(t, f.show(t.Context(), recordID("w", b.First)))
	page, err = s.Changes(t.Context(), registry.ChangesQuery{After: b.First - 1, Limit: 10, Bytes: registry.AnySize})
	if err != nil || len(page.Changes) > 0 {
		t.Errorf("after a late show: got %v, %v; want no change that was never made", page.Changes, err)
	}
}

// TestTheLogLeavesOutLaterBatches opens and shows a batch after a reader of the log has read the clock. The
// reader must not see that batch.
func TestTheLogLeavesOutLaterBatches(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "since"), Options{Lease: time.Hour})
	r := mustCreate(t, s)
	before := expect.Get(s.db.readClock(t.Context(), horizonFields))(t)
	b := feed.Batch{First: time.Now().UnixMicro() + 1_000_000, IDs: []string{r.ID}}
	refused := []feed.Write{{ID: r.ID, Revision: 7, Before: r.Position, Position: b.First, Document: r}}
	f := feedStore{database: s.db}
	_, _, opened := f.Open(t.Context(), "w", b, refused)
	_, written := f.Write(t.Context(), "w", b, refused)
	expect.OK(t, errors.Join(opened, written))
	after := clock{Last: b.First, Open: map[string]int64{"w": b.First}}
	for name, now := range map[string]clock{"the clock before": before, "the clock now": after} {
		log, err := s.db.readLog(t.Context(), r.ID, registry.LogQuery{Limit: 10}, now)
		if err != nil || len(log) != 1 || log[0].Position != r.Position {
			t.Errorf("by %s: got %v, %v; want the creation", name, log, err)
		}
	}
	page, err := s.Changes(t.Context(), registry.ChangesQuery{After: r.Position, Limit: 10, Bytes: registry.AnySize})
	if err != nil || len(page.Changes) > 0 || page.Upto >= b.First {
		t.Errorf("the record: got %v up to %d, %v; want nothing of the open batch at %d",
			page.Changes, page.Upto, err, b.First)
	}
}

func TestPositionsFollowTheStoreIfTheClockIsAhead(t *testing.T) {
	server := mongotest.Start(t)
	s := open(t, server, "ahead", func() time.Time { return time.Now().Add(24 * time.Hour) })
	r := registry.Record{ID: storetest.NewID(), Listed: true, Body: body}
	position := expect.Get(s.Create(t.Context(), r))(t)
	if lead := time.Until(time.UnixMicro(position)); lead > time.Minute {
		t.Errorf("got a position %v ahead of the server's clock, want at most a minute", lead)
	}
	behind := open(t, server, "ahead", func() time.Time { return time.Now().Add(-24 * time.Hour) })
	r.ID = storetest.NewID()
	if next, err := behind.Create(t.Context(), r); err != nil || next <= position {
		t.Errorf("got position %d after %d, %v; want a higher one", next, position, err)
	}
}
