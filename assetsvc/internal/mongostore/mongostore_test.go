package mongostore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// rigTimeout suits the slow MongoDB server of the tests.
const rigTimeout = 20 * time.Second

func opener(server *mongotest.Server) storetest.Opener {
	return func(t *testing.T, name string, now func() time.Time) registry.Store {
		t.Helper()
		return open(t, server, name, now)
	}
}

var notInNames = regexp.MustCompile(`[^a-z]+`)

// open opens a store in a database that only this test uses.
func open(t *testing.T, server *mongotest.Server, name string, now func() time.Time) *Store {
	t.Helper()
	database := "t" + notInNames.ReplaceAllString(t.Name(), "")
	database = database[max(0, len(database)-40):] + name
	return openAt(t, server.URI(t, database), now, Options{})
}

func openAt(tb testing.TB, uri string, now func() time.Time, o Options) *Store {
	tb.Helper()
	o.Now, o.Log, o.Timeout = now, slog.New(slog.NewTextHandler(tb.Output(), nil)), rigTimeout
	s, err := Open(tb.Context(), uri, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := mongotest.Start(t)
	storetest.Run(t, opener(server))
}

// TestStoresStartAtOnce needs the race detector: stores must share no options of the driver.
// No server is needed, as the driver changes the options before it sends anything.
func TestStoresStartAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 8 {
		db, err := connect("mongodb://127.0.0.1:1", rigTimeout)
		if err != nil {
			t.Fatal(err)
		}
		defer db.disconnect()
		all.Go(func() {
			if _, err := db.hooks.Indexes().CreateOne(ctx, placeIndex()); err == nil {
				t.Error("got an index without a server, want an error")
			}
		})
	}
	all.Wait()
}

func TestADatabaseWithoutSizesIsUpgraded(t *testing.T) {
	server := mongotest.Start(t)
	s := open(t, server, "a", time.Now)
	var there []registry.Record
	for range 2*sizeBatch + 1 {
		r := registry.Record{ID: storetest.NewID(), Listed: true, Body: []byte(`{"title":"old"}`)}
		position, err := s.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		r.Position, r.Revision = position, 1
		there = append(there, r)
	}
	unset := func(field string) bson.D { return bson.D{{Key: "$unset", Value: bson.D{{Key: field, Value: ""}}}} }
	err := s.db.do(t.Context(), func(ctx context.Context) error { // earlier versions stored no sizes
		if _, err := s.db.clocks.UpdateOne(ctx, withID(clockID), set(bson.E{Key: "tidy", Value: false})); err != nil {
			return err
		}
		_, err := s.db.assets.UpdateMany(ctx, bson.D{}, unset("size"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), there[0].ID, 100); !errors.Is(err, registry.ErrLarge) {
		t.Errorf("an asset of unknown size: got %v, want ErrLarge", err)
	}
	bodies := registry.Query{Limit: 100, Bodies: registry.MaxAsset}
	if page, err := s.Page(t.Context(), bodies); err != nil || len(page.Entries) != 1 {
		t.Errorf("a page of assets of unknown size: got %d entries, %v; want 1", len(page.Entries), err)
	}
	s.tidy(t.Context())
	for _, want := range there {
		got, err := s.Get(t.Context(), want.ID, len(want.Body))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("after the upgrade: got error %v; the asset differs (-want +got):\n%s", err, diff)
		}
	}
	if page, err := s.Page(t.Context(), bodies); err != nil || len(page.Entries) != len(there) {
		t.Errorf("a page after the upgrade: got %d entries, %v; want %d", len(page.Entries), err, len(there))
	}
}

// TestABoundedReadTakesOneRoundTrip counts the commands of reads with a size limit.
// Only a missing or too large asset needs a second command.
func TestABoundedReadTakesOneRoundTrip(t *testing.T) {
	var mu sync.Mutex
	var reading string // id of the asset
	var reads []string // commands that name the id; the census may send others
	monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		mu.Lock()
		defer mu.Unlock()
		if reading != "" && strings.Contains(e.Command.String(), reading) {
			reads = append(reads, e.CommandName)
		}
	}}
	s := openWith(t, mongotest.Start(t).URI(t, "ttrips"), Options{Monitor: monitor})
	r := mustCreate(t, s)
	for _, c := range []struct {
		name string
		id   string
		most int
		want error
		then []string // commands
	}{
		{"an asset that fits", r.ID, len(r.Body), nil, []string{"aggregate"}},
		{"an asset of any size", r.ID, registry.AnySize, nil, []string{"find"}},
		{"an asset that is too large", r.ID, len(r.Body) - 1, registry.ErrLarge, []string{"aggregate", "find"}},
		{"no asset", storetest.NewID(), len(r.Body), registry.ErrNotFound, []string{"aggregate", "find"}},
	} {
		mu.Lock()
		reading, reads = c.id, nil
		mu.Unlock()
		got, err := s.Get(t.Context(), c.id, c.most)
		if !errors.Is(err, c.want) || err == nil && !bytes.Equal(got.Body, r.Body) {
			t.Errorf("%s: got error %v and a body of %d bytes, want error %v", c.name, err, len(got.Body), c.want)
		}
		mu.Lock()
		if diff := cmp.Diff(c.then, reads); diff != "" {
			t.Errorf("%s: the commands differ (-want +got):\n%s", c.name, diff)
		}
		mu.Unlock()
	}
}

func TestThePublicLogIsStored(t *testing.T) {
	server := mongotest.Start(t)
	storetest.RunLog(t, func(t *testing.T, name string, now func() time.Time) storetest.LogStore {
		return open(t, server, name, now)
	})
}

func TestWebhooksAreStored(t *testing.T) {
	server := mongotest.Start(t)
	storetest.RunWebhooks(t, func(t *testing.T, name string, now func() time.Time) storetest.WebhookStore {
		return open(t, server, name, now)
	})
}
