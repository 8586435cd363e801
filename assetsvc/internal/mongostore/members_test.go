package mongostore

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/lease"
	"asset-registry/shared/mongotest"
)

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(rigTimeout); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %v, want that %s", rigTimeout, what)
		}
	}
}

// registered returns the registered writers.
func registered(t *testing.T, s *Store) []string {
	t.Helper()
	var now clock
	err := s.db.do(t.Context(), func(ctx context.Context) (err error) {
		now, err = s.db.readClock(ctx, only("writers"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return now.Writers
}

// watched is the memory of a gateway. It notes what a writer announces.
type watched struct {
	mu      sync.Mutex
	changed func(ids []string)
	done    int
}

func (w *watched) Change(ids []string) (done func()) {
	w.changed(ids)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done++
	}
}

func (w *watched) Forget() {}

// hold lets a gateway hold leases of stores until the test ends.
func hold(t *testing.T, keeper lease.Keeper, stores ...*Store) *lease.Holder {
	holder := lease.NewHolder(keeper)
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	for _, s := range stores {
		here, there := net.Pipe()
		all.Go(func() { _ = s.Grantor().Serve(there, bufio.NewReader(there)) })
		all.Go(func() { _ = holder.Follow(t.Context(), here, bufio.NewReader(here)) })
		t.Cleanup(func() { here.Close() })
	}
	soon(t, "the gateway has all leases", holder.Valid)
	return holder
}

// TestAStoreAnnouncesABatchBeforeItWrites compares what is stored when a gateway hears of a
// change with what was stored before.
func TestAStoreAnnouncesABatchBeforeItWrites(t *testing.T) {
	leasing := Options{Leases: true, FreshReads: true}
	_, uri := newNode(t, mongotest.Start(t), "announced")
	s, other := openWith(t, uri, leasing), openWith(t, uri, leasing)
	asset := mustCreate(t, s)
	var told []string
	w := &watched{changed: func(ids []string) {
		told = append(told, ids...)
		now, err := other.Get(t.Context(), asset.ID, registry.AnySize)
		if err != nil || now.Position != asset.Position {
			t.Errorf("got the asset at %d, %v, when its change is announced; want %d", now.Position, err, asset.Position)
		}
	}}
	hold(t, w, s, other)
	mustCreate(t, other) // needs no announcement
	position, err := s.Replace(t.Context(), asset)
	if err != nil || position <= asset.Position {
		t.Fatalf("replace: got %d, %v; want a position above %d", position, err, asset.Position)
	}
	if want := []string{asset.ID}; !slices.Equal(told, want) {
		t.Errorf("got announcements of %v, want %v", told, want)
	}
	soon(t, "the gateway hears that the batch is done", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.done == 1
	})
}

// TestAWriterThatIsNotRegisteredJoinsTheOthers opens a store with leases beside one without.
func TestAWriterThatIsNotRegisteredJoinsTheOthers(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "joins")
	plain := openWith(t, uri, Options{})
	asset := mustCreate(t, plain)
	if got := registered(t, plain); len(got) != 0 {
		t.Errorf("got writers %v of a store without leases, want none", got)
	}
	leasing := openWith(t, uri, Options{Leases: true})
	soon(t, "the store with leases is registered", func() bool { return len(registered(t, leasing)) == 1 })
	if _, err := plain.Replace(t.Context(), asset); err != nil {
		t.Fatalf("replace: %v", err)
	}
	group := &members{db: plain.db, writer: registered(t, plain)[1]}
	if _, err := group.Renew(t.Context()); !errors.Is(err, errOldReads) {
		t.Errorf("renew of a store without fresh reads: got %v, want %v", err, errOldReads)
	}
	if got := registered(t, plain); len(got) != 2 {
		t.Errorf("got writers %v, want both", got)
	}
	if err := plain.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if got := registered(t, leasing); len(got) != 1 {
		t.Errorf("got writers %v after one was closed, want the other one", got)
	}
}

// TestADeadWriterIsRemovedOnceItsBatchIsClosed registers a writer that does nothing more.
func TestADeadWriterIsRemovedOnceItsBatchIsClosed(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "removed")
	s := openWith(t, uri, Options{Leases: true, Lease: 2 * lease.Length})
	asset := mustCreate(t, s)
	dead := &members{db: s.db, writer: "dead", start: func() {}}
	if err := dead.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	batch := feed.Batch{First: time.Now().UnixMicro() + 1000, IDs: []string{asset.ID}}
	writes := []feed.Write{{ID: asset.ID, Revision: 1, Before: asset.Position, Position: batch.First, Document: asset}}
	if _, opened, err := (feedStore{database: s.db, group: dead}).Open(t.Context(), "dead", batch, writes); err != nil || !opened {
		t.Fatalf("open: got %v, %v; want true", opened, err)
	}
	soon(t, "the dead writer is removed", func() bool { return !slices.Contains(registered(t, s), "dead") })
	if applied, err := (feedStore{database: s.db, group: dead}).Write(t.Context(), "dead", batch, writes); err != nil || applied != 0 {
		t.Errorf("a write after the removal: got %d applied, %v; want 0", applied, err)
	}
	if _, err := dead.Renew(t.Context()); !errors.Is(err, lease.ErrNotMember) {
		t.Errorf("renew: got %v, want %v", err, lease.ErrNotMember)
	}
	batch.First += time.Hour.Microseconds()
	_, opened, err := (feedStore{database: s.db, group: dead}).Open(t.Context(), "dead", batch, writes)
	if opened || !errors.Is(err, errUnregistered) {
		t.Errorf("open after the removal: got %v, %v; want %v", opened, err, errUnregistered)
	}
}

// TestARemovedWriterJoinsAgain removes a writer that lives, as others do with one that was
// cut off.
func TestARemovedWriterJoinsAgain(t *testing.T) {
	s := openWith(t, mongotest.Start(t).URI(t, "again"), Options{Leases: true})
	asset := mustCreate(t, s)
	soon(t, "the store is registered", func() bool { return len(registered(t, s)) == 1 })
	name := registered(t, s)[0]
	if removed, err := s.db.remove(t.Context(), name); err != nil || !removed {
		t.Fatalf("remove: got %v, %v; want true", removed, err)
	}
	if _, err := s.Replace(t.Context(), asset); err != nil {
		t.Fatalf("replace: %v", err)
	}
	if got := registered(t, s); len(got) != 1 {
		t.Errorf("got writers %v after a change, want the one that has made it", got)
	}
}

// TestNoLeasesBesideABatchOfAnUnregisteredWriter opens a batch for a writer of a program
// that knows no leases.
func TestNoLeasesBesideABatchOfAnUnregisteredWriter(t *testing.T) {
	_, uri := newNode(t, mongotest.Start(t), "unannounced")
	s := openWith(t, uri, Options{Leases: true, FreshReads: true, Lease: time.Hour})
	soon(t, "the store is registered", func() bool { return len(registered(t, s)) == 1 })
	open := func(change bson.D) {
		if _, err := s.db.clocks.UpdateOne(t.Context(), withID(clockID), change); err != nil {
			t.Fatal(err)
		}
	}
	group := &members{db: s.db, writer: registered(t, s)[0]}
	open(set(bson.E{Key: "open.old", Value: int64(1)}, bson.E{Key: "ids.old", Value: []string{storetest.NewID()}}))
	if _, err := group.Renew(t.Context()); !errors.Is(err, errUnannounced) {
		t.Errorf("renew: got %v, want %v", err, errUnannounced)
	}
	open(bson.D{{Key: "$unset", Value: bson.D{{Key: "open.old", Value: ""}, {Key: "ids.old", Value: ""}}}})
	if _, err := group.Renew(t.Context()); err != nil {
		t.Errorf("renew: got %v, want none", err)
	}
}
