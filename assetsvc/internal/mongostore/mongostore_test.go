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
	"go.mongodb.org/mongo-driver/v2/event"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/fair"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// rigTimeout is the timeout of an operation in tests. It is long because the stand-in for MongoDB is slow.
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
	database = database[max(0, len(database)-30):] + name
	return openAt(t, server.URI(t, database), now, Options{})
}

func openAt(tb testing.TB, uri string, now func() time.Time, o Options) *Store {
	tb.Helper()
	o.Now, o.Log, o.Timeout = now, slog.New(slog.NewTextHandler(tb.Output(), nil)), rigTimeout
	s := expect.Get(Open(tb.Context(), uri, o))(tb)
	tb.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := mongotest.Start(t)
	storetest.Run(t, opener(server))
}

// TestAReadingThatWaitsHasNoPlace asks for an asset with a place. While the store waits for its server, others have
// the place.
// Promises: fair-places
func TestAReadingThatWaitsHasNoPlace(t *testing.T) {
	s, places := open(t, mongotest.Start(t), "", time.Now), fair.New(1)
	ctx, end, err := places.Take(t.Context(), "one", 1)
	expect.OK(t, err)
	defer end()
	var waiting int64
	err = s.db.do(ctx, func(context.Context) error {
		waiting = places.Used()
		return nil
	})
	if after := places.Used(); err != nil || waiting != 0 || after != 1 {
		t.Errorf("got %v, %d places while it waits and %d afterwards, want no error, none and one", err, waiting, after)
	}
}

// TestStoresStartAtOnce lets several stores create an index at the same time. They must not share the options of the
// index, because the driver changes these options. Only the race detector notices that. The test needs no server,
// because the driver changes the options before it sends anything.
func TestStoresStartAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 8 {
		db := expect.Get(connect("mongodb://127.0.0.1:1", rigTimeout))(t)
		defer db.disconnect()
		all.Go(func() {
			expect.FailsOf(t, "")(db.hooks.Indexes().CreateOne(ctx, placeIndex()))
		})
	}
	all.Wait()
}

// TestABoundedReadTakesOneRoundTrip counts the commands that a read with a limit of bytes sends. It must send only one.
// It may send a second one only if the asset is missing or too large. Look without a function asks for no body.
func TestABoundedReadTakesOneRoundTrip(t *testing.T) {
	var mu sync.Mutex
	var reading string // id of the asset
	var reads []string // commands that name this id; the census may send others
	var newest string  // the last of them
	monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		mu.Lock()
		defer mu.Unlock()
		if reading != "" && strings.Contains(e.Command.String(), reading) {
			reads, newest = append(reads, e.CommandName), e.Command.String()
		}
	}}
	s := openWith(t, mongotest.Start(t).URI(t, "ttrips"), Options{Monitor: monitor})
	r := mustCreate(t, s)
	for _, c := range []struct {
		name string
		id   string
		most int
		want error
		then []string // commands that the read sends
	}{
		{"an asset that fits", r.ID, len(r.Body), nil, []string{"find"}},
		{"an asset of any size", r.ID, registry.AnySize, nil, []string{"find"}},
		{"an asset that is too large", r.ID, len(r.Body) - 1, registry.ErrLarge, []string{"find", "find"}},
		{"no asset", storetest.NewID(), len(r.Body), registry.ErrNotFound, []string{"find", "find"}},
	} {
		mu.Lock()
		reading, reads = c.id, nil
		mu.Unlock()
		got, err := s.Get(t.Context(), c.id, c.most)
		if !errors.Is(err, c.want) || err == nil && !bytes.Equal(got.Body, r.Body) {
			t.Errorf("%s: got error %v and a body of %d bytes, want error %v", c.name, err, len(got.Body), c.want)
		}
		mu.Lock()
		expect.NoDiff(t, cmp.Diff(c.then, reads), "%s: the commands differ", c.name)
		mu.Unlock()
	}
	mu.Lock()
	reading, reads = r.ID, nil
	mu.Unlock()
	got, err := s.Look(t.Context(), r.ID, 0, nil)
	mu.Lock()
	defer mu.Unlock()
	if err != nil || got.ID != r.ID || len(reads) != 1 || !strings.Contains(newest, `"projection": {"body": `) {
		t.Errorf("look without a function: got %+v, %v after %q; want the asset after one command without the body",
			got, err, newest)
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

func TestEndingsAreKept(t *testing.T) { storetest.RunEndings(t, opener(mongotest.Start(t))) }
