package mongostore

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// several is stores on one database, as different processes have them: each
// call goes to any of them.
type several []registry.Store

func (s several) any() registry.Store { return s[rand.IntN(len(s))] }

func (s several) Create(ctx context.Context, r registry.Record) (int64, error) {
	return s.any().Create(ctx, r)
}

func (s several) Replace(ctx context.Context, r registry.Record) (int64, error) {
	return s.any().Replace(ctx, r)
}

func (s several) Get(ctx context.Context, id string, most int) (registry.Record, error) {
	return s.any().Get(ctx, id, most)
}

func (s several) Page(ctx context.Context, q registry.Query) ([]registry.Entry, error) {
	return s.any().Page(ctx, q)
}

func (s several) NextNumber(ctx context.Context, day string) (int, error) {
	return s.any().NextNumber(ctx, day)
}

func (s several) Log(ctx context.Context, id string) ([]registry.Revision, error) {
	return s.any().Log(ctx, id)
}

func (s several) Ready(ctx context.Context) error { return s.any().Ready(ctx) }
func (s several) Close() error                    { return nil }

func TestTheFeedOfSeveralStores(t *testing.T) {
	server, seed := mongotest.Start(t), uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	var stores several
	for range 3 {
		drift := time.Duration(random.IntN(6000)-3000) * time.Millisecond
		stores = append(stores, open(t, server, "several", func() time.Time { return time.Now().Add(drift) }))
	}
	report := storetest.CheckFeed(t, stores, storetest.Load{Seed: seed, Writers: 12, Followers: 6, Changes: 500, Assets: 60, Patience: rigTimeout})
	t.Logf("seed %d: %v", seed, report)
	for _, v := range report.Violations {
		t.Error(v)
	}
	if report.Changes < 500 || report.Checks < report.Changes {
		t.Errorf("too little was done to mean anything: %v", report)
	}
}

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
					t.Errorf("number %d was given twice, or %v", n, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestABatchOfADeadWriterIsFenced opens a batch in the name of a process that
// dies then, leaving its writes on the wire.
func TestABatchOfADeadWriterIsFenced(t *testing.T) {
	const lease = 300 * time.Millisecond
	uri := mongotest.Start(t).URI(t, "fenced")
	s := openWith(t, uri, Options{Lease: lease})
	there, dead := mustCreate(t, s), order{s.db}
	newID := storetest.NewID()
	batch := feed.Batch{First: time.Now().UnixMicro() + 1000, IDs: []string{there.ID, newID}}
	if _, opened, err := dead.Open(t.Context(), "dead", batch); err != nil || !opened {
		t.Fatalf("open: %v, %v", opened, err)
	}
	late := []feed.Write{
		{ID: there.ID, Revision: 1, Position: batch.First, Document: there},
		{ID: newID, Position: batch.First + 1, Document: registry.Record{ID: newID, Listed: true, Body: body}},
	}
	after := mustCreate(t, s)
	for end := time.Now().Add(rigTimeout); ; time.Sleep(lease / 10) {
		entries, err := s.Page(t.Context(), registry.Query{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 2 && entries[1].ID == after.ID {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the dead writer holds the feed back for ever: %v", entries)
		}
	}
	if applied, err := dead.Write(t.Context(), late); err != nil || applied != 0 {
		t.Errorf("late writes: %d were applied, %v", applied, err)
	}
	if answers, err := dead.Landed(t.Context(), late); err != nil || answers[0] != feed.No || answers[1] != feed.No {
		t.Errorf("late writes landed: %v, %v", answers, err)
	}
	if _, err := s.Get(t.Context(), newID, registry.AnySize); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a void is shown: %v", err)
	}
	if _, err := s.Create(t.Context(), registry.Record{ID: newID, Body: body}); err == nil || errors.Is(err, registry.ErrExists) {
		t.Errorf("a void is used: %v", err)
	}
	if _, err := s.Replace(t.Context(), there); !errors.Is(err, registry.ErrStale) {
		t.Errorf("a change of what was fenced: got %v, want ErrStale", err)
	}
	current, err := s.Get(t.Context(), there.ID, registry.AnySize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), current); err != nil {
		t.Errorf("a change that knows of the fence: %v", err)
	}
}

func TestLandedIsToldByTheTrail(t *testing.T) {
	write := feed.Write{Revision: 4, Position: 500}
	slot := slotOf(write)
	for name, c := range map[string]struct {
		d    document
		want feed.Answer
	}{
		"no document":                             {document{}, feed.No},
		"before it":                               {document{Revision: 4, Trail: map[string]int64{}}, feed.No},
		"with it":                                 {document{Revision: 5, Trail: map[string]int64{slot: 500}}, feed.Yes},
		"with it, and fenced":                     {document{Revision: 7, Trail: map[string]int64{slot: 500}}, feed.Yes},
		"with another's in its place":             {document{Revision: 5, Trail: map[string]int64{slot: 501}}, feed.No},
		"with an older one in its slot, fenced":   {document{Revision: 25, Trail: map[string]int64{slot: 400}}, feed.No},
		"so much later that nobody knows":         {document{Revision: 4 + 1 + trailSlots, Trail: map[string]int64{slot: 900}}, feed.Maybe},
		"almost so much later, another's":         {document{Revision: 4 + trailSlots, Trail: map[string]int64{slot: 501}}, feed.No},
		"a void":                                  {document{Revision: voidRevision + 3}, feed.No},
		"so much later, and it is still in sight": {document{Revision: 300, Trail: map[string]int64{slot: 500}}, feed.Yes},
	} {
		if got := c.d.landed(write); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestAClockThatIsAheadIsNotUsed(t *testing.T) {
	server := mongotest.Start(t)
	s := open(t, server, "ahead", func() time.Time { return time.Now().Add(24 * time.Hour) })
	r := registry.Record{ID: storetest.NewID(), Listed: true, Body: body}
	position, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if lead := time.Until(time.UnixMicro(position)); lead > time.Minute {
		t.Errorf("a position is %v ahead", lead)
	}
	behind := open(t, server, "ahead", func() time.Time { return time.Now().Add(-24 * time.Hour) })
	r.ID = storetest.NewID()
	if next, err := behind.Create(t.Context(), r); err != nil || next <= position {
		t.Errorf("%d follows %d, %v", next, position, err)
	}
}

func TestADatabaseOfSomethingElseIsLeftAlone(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "foreign")
	db, err := connect(uri, rigTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer db.client.Disconnect(t.Context())
	if _, err := db.clocks.InsertOne(t.Context(), bson.D{{Key: "_id", Value: clockID}, {Key: "format", Value: "something else"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), uri, Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Timeout: rigTimeout}); !errors.Is(err, errForeign) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenImport(t.Context(), uri); !errors.Is(err, errForeign) {
		t.Errorf("a move: got %v", err)
	}
	if _, err := Open(t.Context(), "mongodb://user:hunter2@/", Options{}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a malformed address: got %v", err)
	}
}
