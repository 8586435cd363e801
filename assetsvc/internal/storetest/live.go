package storetest

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/live"
	"asset-registry/assetsvc/internal/registry"
)

// counted is a store that counts what a watcher reads from it.
type counted struct {
	registry.Store
	bodies atomic.Int64
}

func (c *counted) List(ctx context.Context, q registry.Query) (registry.FeedPage, error) {
	page, err := c.Page(ctx, q)
	for _, e := range page.Entries {
		if e.Body != nil {
			c.bodies.Add(1)
		}
	}
	return page, err
}

// testLive lets many followers read two selections of the feed while several writers create assets. The watcher
// must read each asset once, and encode it once for each selection.
func testLive(t *testing.T, open Opener) {
	const followers, writers, each = 50, 4, 25
	store := &counted{Store: open(t, "a", at(start))}
	printed := func(position int64) string { return strconv.FormatInt(position, 10) }
	w := live.New(store, printed, 1<<20, slog.New(slog.DiscardHandler))
	defer w.Close()
	var encoded [2]atomic.Int64
	for i := range followers {
		encode := func(dst []byte, _ registry.Entry) ([]byte, error) {
			encoded[i%2].Add(1)
			return append(dst, "{}"...), nil
		}
		ring, leave, err := w.Join(live.Selection{Fields: []string{"*", "title"}[i%2]}, encode)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		for {
			view := ring.Read(0, 0)
			if _, started := ring.Upto(); started {
				break
			}
			<-view.Changed
		}
	}
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range each {
				if _, err := store.Create(t.Context(), asset(NewID(), true)); err != nil {
					t.Errorf("create: %v", err)
				}
			}
		})
	}
	writing.Wait()
	const want = writers * each
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if encoded[0].Load() >= want && encoded[1].Load() >= want {
			break
		}
	}
	for i := range encoded {
		if got := encoded[i].Load(); got != want {
			t.Errorf("selection %d: got %d encodings, want %d", i, got, want)
		}
	}
	if got := store.bodies.Load(); got != want {
		t.Errorf("got %d assets read from the store, want %d", got, want)
	}
}
