package mongostore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/live"
	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// newLogged returns a registry on the store, and a writer of its public log.
func newLogged(t *testing.T, s *Store) (*registry.Registry, *publiclog.Writer) {
	t.Helper()
	seed := sha256.Sum256(nil)
	key := expect.Get(translog.NewKey(translog.ForLog, "registry.example/log", seed[:]))(t)
	rules := asset.Rules{Types: []string{"bounce"}, Zone: time.UTC}
	assets := registry.New(s, issuer{}, rules, s.Now).WithLog(publiclog.NewReader(s))
	return assets, publiclog.NewWriter(s, s, publiclog.Options{Keys: []translog.Key{key}})
}

// TestAProofTakesThreeCommands asks for proofs of each public revision of an asset with 20 revisions. Each proof may
// send three commands: it reads the clock, the changes of the asset and the head of the log.
func TestAProofTakesThreeCommands(t *testing.T) {
	sent := &sentCommands{}
	s := openWith(t, mongotest.Start(t).URI(t, "proofs"), Options{Monitor: sent.monitor(), Lease: time.Hour})
	assets, writer := newLogged(t, s)
	created := expect.Get(assets.Create(t.Context(), anyBroker, input(t, validAsset)))(t)
	const revisions = 20
	for i := 2; i <= revisions; i++ {
		change := fmt.Sprintf(`{"title":"%d"}`, i)
		if i == 2 {
			change = `{"status":"pending"}`
		}
		expect.Get(assets.Change(t.Context(), anyBroker, created.ID, "token", input(t, change)))(t)
	}
	if _, _, err := writer.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect.Get(writer.Sign(t.Context()))(t)
	for revision := range int64(revisions + 1) {
		if revision == 1 { // a draft
			continue
		}
		before := sent.count()
		if _, evidence, err := assets.Prove(t.Context(), created.ID, revision); err != nil || evidence.Salt == nil {
			t.Fatalf("revision %d: got %v, want a proof with the asset", revision, err)
		}
		if got := sent.count() - before; got > 3 {
			t.Errorf("revision %d: got %d commands, want 3", revision, got)
		}
	}
}

// count returns the number of all commands.
func (c *sentCommands) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// TestAnIdleServiceSendsFewCommands counts the commands of a service with a public log that nobody changes, while some
// selections of its feed are followed and others ask whether it is ready. At most 16 commands a second are sent: two of
// them for webhooks and the endings of keys, which this test leaves out.
func TestAnIdleServiceSendsFewCommands(t *testing.T) {
	server := mongotest.Start(t)
	for _, watchers := range []int{0, 1, 50} {
		t.Run(fmt.Sprintf("%d watchers", watchers), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			sent, looks := 0, make(chan struct{}, 1000)
			s := openWith(t, server.URI(t, fmt.Sprintf("idle%d", watchers)), Options{Monitor: &event.CommandMonitor{
				Started: func(_ context.Context, e *event.CommandStartedEvent) {
					mu.Lock()
					defer mu.Unlock()
					of, _ := e.Command.Lookup(e.CommandName).StringValueOK()
					if e.CommandName == "hello" {
						looks <- struct{}{}
					} else if of != "clock" && of != "log" {
						return // the census, once a minute
					}
					sent++
				},
			}})
			assets, writer := newLogged(t, s)
			mustCreate(t, s)
			w := live.New(assets, func(int64) string { return "" }, 1<<20, slog.New(slog.DiscardHandler))
			defer w.Close()
			var running sync.WaitGroup
			defer running.Wait()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			running.Go(func() { writer.Run(ctx, func(time.Time, error) {}) })
			for i := range watchers {
				encode := func(dst []byte, _ registry.Entry) ([]byte, error) { return append(dst, "{}"...), nil }
				if _, _, err := w.Join(live.Selection{Fields: fmt.Sprint(i)}, encode); err != nil {
					t.Fatal(err)
				}
				running.Go(func() {
					for ctx.Err() == nil {
						_ = assets.Ready(ctx)
						select {
						case <-ctx.Done():
						case <-time.After(10 * time.Millisecond):
						}
					}
				})
			}
			commands := func(looked int) (total int, at time.Time) {
				for range looked { // they have a fixed pace
					<-looks
				}
				mu.Lock()
				defer mu.Unlock()
				return sent, time.Now()
			}
			before, began := commands(2 * looksPerLease) // the store is prepared, and the pauses of the watcher have become long
			after, ended := commands(looksPerLease)
			if got := float64(after-before) / ended.Sub(began).Seconds(); got > 14 {
				t.Errorf("got %.1f commands a second, want at most 14", got)
			}
		})
	}
}

// TestClientsSeeWhatWasAcknowledged lets a process change an asset after another one has read the clock. A page, the
// changes of an asset and the record must not come from that reading (F4), although it is recent.
func TestClientsSeeWhatWasAcknowledged(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "seen")
	s, other := openWith(t, uri, Options{Lease: time.Hour}), openWith(t, uri, Options{Lease: time.Hour})
	for name, has := range map[string]func(r registry.Record) (bool, error){
		"a page": func(r registry.Record) (bool, error) {
			page, err := s.Page(t.Context(), registry.Query{Limit: 1, Mode: registry.All, Descending: true})
			return len(page.Entries) == 1 && page.Entries[0].ID == r.ID, err
		},
		"the changes of an asset": func(r registry.Record) (bool, error) {
			log, err := s.Log(t.Context(), r.ID, registry.LogQuery{Limit: 1})
			return len(log) == 1, err
		},
		"the record": func(r registry.Record) (bool, error) {
			q := registry.ChangesQuery{After: r.Position - 1, Limit: 1, Bytes: registry.AnySize}
			page, err := s.Changes(t.Context(), q)
			return len(page.Changes) == 1, err
		},
	} {
		before := expect.Get(s.db.readHorizon(t.Context()))(t)
		r := mustCreate(t, other)
		s.db.recent.Store(&reading{before, time.Now().Add(time.Hour)})
		if recent, err := s.db.recentHorizon(t.Context(), registry.Recently); err != nil || recent.Last != before.Last {
			t.Errorf("a recent reading: got %d, %v; want %d", recent.Last, err, before.Last)
		}
		if there, err := has(r); err != nil || !there {
			t.Errorf("%s: got %t, %v; want the asset of the other process", name, there, err)
		}
	}
}
