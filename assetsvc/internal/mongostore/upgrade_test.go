package mongostore

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// older makes a database of the format before. An asset has the changes in its ring.
type older struct {
	*database
	t *testing.T
}

func (o older) clock(last int64, open map[string]int64, ids map[string][]string) {
	o.t.Helper()
	_, err := o.clocks.InsertOne(o.t.Context(), append(withID(oldClockID), bson.E{Key: "format", Value: oldFormat},
		bson.E{Key: "last", Value: last}, bson.E{Key: "open", Value: open}, bson.E{Key: "ids", Value: ids},
		bson.E{Key: "sized", Value: true}))
	if err != nil {
		o.t.Fatal(err)
	}
}

// asset stores an asset with changes at positions; those in ring are in its ring.
func (o older) asset(r registry.Record, ring map[int64]int64) registry.Record {
	o.t.Helper()
	log := map[string][]byte{}
	for revision, position := range ring {
		entry := binary.BigEndian.AppendUint64(nil, uint64(revision))
		entry = binary.BigEndian.AppendUint64(entry, uint64(position))
		log[fmt.Sprint(revision%100)] = fmt.Appendf(entry, "change %d", revision)
	}
	trail := map[string]int64{fmt.Sprint(r.Revision % 16): r.Position}
	if _, err := o.assets.InsertOne(o.t.Context(), oldDocument{Asset: imported(r), Trail: trail, Log: log}); err != nil {
		o.t.Fatal(err)
	}
	return r
}

// describe is the Import of the tests.
func describe(r registry.Record, change []byte) (described, whole []byte, err error) {
	return append([]byte("imported "), change...), append([]byte("whole of "), r.ID...), nil
}

// TestADatabaseOfTheFormatBeforeIsUpgraded upgrades a database in which one batch is
// open and its writer is dead. Four stores do so at once. Two of them have a short lease
// and fence the dead writer; they do not watch. The others work afterwards. Their lease
// is an hour, so that a slow machine fences no batch of theirs.
func TestADatabaseOfTheFormatBeforeIsUpgraded(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "older")
	db, err := connect(uri, rigTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer db.client.Disconnect(t.Context())
	o := older{db, t}
	start := time.Now().Add(-time.Hour).UnixMicro()
	plain := o.asset(registry.Record{ID: storetest.NewID(), Revision: 2, Position: start + 20, Listed: true, Body: body},
		map[int64]int64{1: start + 10, 2: start + 20})
	bare := o.asset(registry.Record{ID: storetest.NewID(), Revision: 7, Position: start + 30, Body: body}, nil)
	// The dead writer has changed one asset, and never created the other.
	half := o.asset(registry.Record{ID: storetest.NewID(), Revision: 3, Position: start + 40, Listed: true, Test: true,
		Body: body}, map[int64]int64{2: start + 5, 3: start + 40})
	never := storetest.NewID()
	if _, err := db.assets.InsertOne(t.Context(), append(withID(storetest.NewID()),
		bson.E{Key: "revision", Value: int64(voidRevision)})); err != nil {
		t.Fatal(err)
	}
	o.clock(start+41, map[string]int64{"dead": start + 40}, map[string][]string{"dead": {half.ID, never}})
	stores := several{
		openWith(t, uri, Options{Lease: time.Hour, Import: describe}),
		openWith(t, uri, Options{Lease: time.Hour, Import: describe}),
	}
	if err := stores[0].Ready(t.Context()); err == nil {
		t.Error("got a store that is ready before the upgrade, want an error")
	}
	var upgrades sync.WaitGroup
	for range 2 {
		o := Options{Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Timeout: rigTimeout,
			Lease: 200 * time.Millisecond, Import: describe}.withDefaults()
		s, err := newStore(uri, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.release()
		upgrades.Go(func() { s.keepPreparing(t.Context(), o) })
	}
	upgrades.Wait()
	for _, s := range stores {
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("got %v after the upgrade, want a store that is ready", err)
		}
	}
	page, err := stores[0].Changes(t.Context(), registry.ChangesQuery{Limit: 10, Bytes: registry.AnySize, Whole: true})
	old := func(r registry.Record, revision, position int64) registry.Revision {
		return registry.Revision{
			ID: r.ID, Revision: revision, Position: position, Change: fmt.Appendf(nil, "change %d", revision),
		}
	}
	newest := func(r registry.Record, before int64, change string) registry.Revision {
		return registry.Revision{ID: r.ID, Revision: r.Revision, Position: r.Position, Before: before, Listed: r.Listed,
			Test: r.Test, Change: []byte("imported " + change), Whole: []byte("whole of " + r.ID)}
	}
	want := []registry.Revision{
		old(half, 2, start+5), old(plain, 1, start+10), newest(plain, start+10, "change 2"), newest(bare, 0, ""),
		newest(half, start+5, "change 3"),
	}
	if diff := cmp.Diff(want, page.Changes, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("got error %v; the record differs (-want +got):\n%s", err, diff)
	}
	if page.Upto != start+41 {
		t.Errorf("got a record up to %d, want %d", page.Upto, start+41)
	}
	o.checkKeptAway()
	// The database works: a change follows, and the rings go away.
	current, err := stores[0].Get(t.Context(), plain.ID, registry.AnySize)
	if err != nil {
		t.Fatal(err)
	}
	if position, err := stores[1].Replace(t.Context(), current); err != nil || position <= start+41 {
		t.Errorf("a change after the upgrade: got %d, %v; want a position above %d", position, err, start+41)
	}
	for left := int64(1); left > 0; time.Sleep(20 * time.Millisecond) { // ends unless the store is stuck
		if left, err = db.assets.CountDocuments(t.Context(), bson.D{hasRings}); err != nil {
			t.Fatal(err)
		}
	}
}

// checkKeptAway does what a program of the format before does: it must neither read the
// clock nor open a batch.
func (o older) checkKeptAway() {
	o.t.Helper()
	var clock struct {
		Format string `bson:"format"`
		Last   int64  `bson:"last"`
	}
	if err := o.clocks.FindOne(o.t.Context(), withID(oldClockID)).Decode(&clock); err == nil {
		o.t.Errorf("got clock %+v for a program of the format before, want an error", clock)
	}
	result, err := o.clocks.UpdateOne(o.t.Context(),
		append(withID(oldClockID), bson.E{Key: "last", Value: bson.D{{Key: "$lt", Value: time.Now().UnixMicro()}}}),
		set(bson.E{Key: "last", Value: time.Now().UnixMicro()}))
	if err != nil || result.MatchedCount != 0 {
		o.t.Errorf("got %+v, %v; want an update that matches nothing", result, err)
	}
	if clock.Format == oldFormat {
		o.t.Errorf("got format %q, want another", clock.Format)
	}
}
