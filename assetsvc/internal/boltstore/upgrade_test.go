package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
)

// makeOlder turns a file into one of the format before: it has the newest changes of
// each asset in a bucket of their own, and no record.
func makeOlder(tx *bbolt.Tx, kept map[string][]registry.Revision) error {
	log, err := tx.CreateBucket(logBucket)
	for _, name := range [][]byte{changeBucket, historyBucket} {
		err = errors.Join(err, tx.DeleteBucket(name))
	}
	for id, revisions := range kept {
		key, _ := keyOf(id)
		for _, r := range revisions {
			err = errors.Join(err, log.Put(historyKey(key, r.Revision), append(positionKey(r.Position), r.Change...)))
		}
	}
	meta := tx.Bucket([]byte("meta"))
	return errors.Join(err, tx.Bucket(stateBucket).Delete(recordKey), meta.Put([]byte("format"), []byte(olderFormats[1])))
}

// TestAFileOfTheFormatBeforeGetsARecord upgrades a file in which some assets have no
// kept change. The upgrade is interrupted several times.
func TestAFileOfTheFormatBeforeGetsARecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	s, err := Open(path, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	kept, want := map[string][]registry.Revision{}, map[string][]registry.Revision{}
	for i := range 3 * upgradeBatch {
		r := registry.Record{ID: storetest.NewID(), Listed: i%2 == 0, Body: fmt.Appendf(nil, `{"n":%d}`, i)}
		r.Position, err = s.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		r.Revision = 1
		whole := fmt.Appendf(nil, "whole %s", r.Body)
		newest := registry.Revision{ID: r.ID, Revision: 1, Position: r.Position, Listed: r.Listed,
			Change: []byte("imported "), Whole: whole}
		if i%3 != 0 {
			old := registry.Revision{ID: r.ID, Revision: 1, Position: r.Position, Change: []byte("creation")}
			r.Position, err = s.Replace(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			change := registry.Revision{ID: r.ID, Revision: 2, Position: r.Position, Change: []byte("change")}
			kept[r.ID] = []registry.Revision{old, change}
			newest.Revision, newest.Position, newest.Before = 2, r.Position, old.Position
			newest.Change = []byte("imported change")
			want[r.ID] = []registry.Revision{newest, old}
		} else {
			want[r.ID] = []registry.Revision{newest}
		}
	}
	err = s.file.Update(func(tx *bbolt.Tx) error { return makeOlder(tx, kept) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	describe := func(r registry.Record, change []byte) (described, whole []byte, err error) {
		return append([]byte("imported "), change...), append([]byte("whole "), r.Body...), nil
	}
	stops := 0
	stopping := func(r registry.Record, change []byte) (described, whole []byte, err error) {
		if stops++; stops%(upgradeBatch+100) == 0 {
			return nil, nil, errors.New("interrupted")
		}
		return describe(r, change)
	}
	interrupted := 0
	for s = nil; s == nil; interrupted++ {
		if s, err = Open(path, Options{Now: time.Now, Import: stopping}); err != nil && s != nil || interrupted > 10 {
			t.Fatalf("got %v, %v; want a store or an error", s, err)
		}
	}
	t.Cleanup(func() { s.Close() })
	if interrupted < 3 {
		t.Errorf("got %d attempts, want at least two interruptions", interrupted)
	}
	for id, revisions := range want {
		got, err := s.Log(t.Context(), id, registry.LogQuery{Limit: 10, Whole: true})
		if diff := cmp.Diff(revisions, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("got error %v; the log of %s differs (-want +got):\n%s", err, id, diff)
		}
	}
}
