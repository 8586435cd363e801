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

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// several stands for several processes that share one database. Each call goes to a
// random store.
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

// TestABatchOfADeadWriterIsFenced opens a batch for a process that then dies. The
// writes of the batch arrive after the fence.
func TestABatchOfADeadWriterIsFenced(t *testing.T) {
	const lease = 300 * time.Millisecond
	uri := mongotest.Start(t).URI(t, "fenced")
	s := openWith(t, uri, Options{Lease: lease})
	there, dead := mustCreate(t, s), feedStore{s.db}
	newID := storetest.NewID()
	batch := feed.Batch{First: time.Now().UnixMicro() + 1000, IDs: []string{there.ID, newID}}
	if _, opened, err := dead.Open(t.Context(), "dead", batch); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
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
			t.Fatalf("got page %v, want the assets without the dead writer's batch", entries)
		}
	}
	if applied, err := dead.Write(t.Context(), late); err != nil || applied != 0 {
		t.Errorf("late writes: got %d applied, %v; want 0", applied, err)
	}
	answers, err := dead.Landed(t.Context(), late)
	if diff := cmp.Diff([]feed.Answer{feed.No, feed.No}, answers); err != nil || diff != "" {
		t.Errorf("landed: got error %v; the answers differ (-want +got):\n%s", err, diff)
	}
	if _, err := s.Get(t.Context(), newID, registry.AnySize); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("get a void: got %v, want ErrNotFound", err)
	}
	if _, err := s.Create(t.Context(), registry.Record{ID: newID, Body: body}); !errors.Is(err, registry.ErrVoid) {
		t.Errorf("create under the id of a void: got %v, want ErrVoid", err)
	}
	if _, err := s.Replace(t.Context(), there); !errors.Is(err, registry.ErrStale) {
		t.Errorf("change with the revision before the fence: got %v, want ErrStale", err)
	}
	current, err := s.Get(t.Context(), there.ID, registry.AnySize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), current); err != nil {
		t.Errorf("change with the revision after the fence: got %v, want nil", err)
	}
}

func TestTheTrailTellsWhetherAWriteLanded(t *testing.T) {
	write := feed.Write{Revision: 4, Position: 500}
	slot := slotOf(write)
	for _, c := range []struct {
		name     string
		revision int64
		position int64 // in the write's slot of the trail; 0: none
		want     feed.Answer
	}{
		{"no document", 0, 0, feed.No},
		{"a void", voidRevision + 3, 0, feed.No},
		{"the document before the write", 4, 0, feed.No},
		{"the write", 5, 500, feed.Yes},
		{"the write, then fences", 7, 500, feed.Yes},
		{"the write, much later", 300, 500, feed.Yes},
		{"another write of the same revision", 5, 501, feed.No},
		{"an older write in the slot, then fences", 25, 400, feed.No},
		{"a later write, before the slot is used again", 4 + trailSlots, 501, feed.No},
		{"a later write, after the slot is used again", 4 + 1 + trailSlots, 900, feed.Maybe},
	} {
		d := document{Revision: c.revision, Trail: map[string]int64{}}
		if c.position != 0 {
			d.Trail[slot] = c.position
		}
		if got := d.landed(write); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPositionsFollowTheStoreIfTheClockIsAhead(t *testing.T) {
	server := mongotest.Start(t)
	s := open(t, server, "ahead", func() time.Time { return time.Now().Add(24 * time.Hour) })
	r := registry.Record{ID: storetest.NewID(), Listed: true, Body: body}
	position, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if lead := time.Until(time.UnixMicro(position)); lead > time.Minute {
		t.Errorf("got a position %v ahead of the server's clock, want at most a minute", lead)
	}
	behind := open(t, server, "ahead", func() time.Time { return time.Now().Add(-24 * time.Hour) })
	r.ID = storetest.NewID()
	if next, err := behind.Create(t.Context(), r); err != nil || next <= position {
		t.Errorf("got position %d after %d, %v; want a higher one", next, position, err)
	}
}

func TestADatabaseOfAnotherFormatIsRefused(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "foreign")
	db, err := connect(uri, rigTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer db.client.Disconnect(t.Context())
	foreign := append(withID(clockID), bson.E{Key: "format", Value: "something else"})
	if _, err := db.clocks.InsertOne(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	o := Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Timeout: rigTimeout}
	if _, err := Open(t.Context(), uri, o); !errors.Is(err, errForeign) {
		t.Errorf("open: got %v, want errForeign", err)
	}
	if _, err := OpenImport(t.Context(), uri); !errors.Is(err, errForeign) {
		t.Errorf("import: got %v, want errForeign", err)
	}
	_, err = Open(t.Context(), "mongodb://user:hunter2@/", o)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a malformed address: got %v, want an error without the password", err)
	}
}
