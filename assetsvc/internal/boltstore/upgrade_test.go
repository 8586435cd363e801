package boltstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

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
		key, _ := registry.ParseID(id)
		for _, r := range revisions {
			err = errors.Join(err, log.Put(historyKey(key, r.Revision), append(positionKey(r.Position), r.Change...)))
		}
	}
	meta := tx.Bucket([]byte("meta"))
	return errors.Join(err, tx.Bucket(stateBucket).Delete(recordKey), meta.Put([]byte("format"), []byte(olderFormats[1])))
}

// older makes a file of the format before, in which some assets have no kept change. It
// returns the log that each asset has after the upgrade.
func older(t *testing.T, path string) (want map[string][]registry.Revision) {
	t.Helper()
	s, err := Open(path, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NextNumber(t.Context(), "2026-11-20"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // of both maps
	kept := map[string][]registry.Revision{}
	want = map[string][]registry.Revision{}
	var all errgroup.Group // together, the assets share transactions
	all.SetLimit(64)
	for i := range 3 * upgradeBatch {
		all.Go(func() error {
			r := registry.Record{ID: storetest.NewID(), Listed: i%2 == 0, Body: fmt.Appendf(nil, `{"n":%d}`, i)}
			changes, log, err := history(t.Context(), s, r, i%3 != 0)
			mu.Lock()
			defer mu.Unlock()
			want[r.ID] = log
			if changes != nil {
				kept[r.ID] = changes
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	err = s.file.Update(func(tx *bbolt.Tx) error { return makeOlder(tx, kept) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return want
}

// history creates an asset, and may change it once. It returns the changes that a file of the
// format before keeps, and the log that the asset has after the upgrade.
func history(ctx context.Context, s *Store, r registry.Record, changed bool) (kept, log []registry.Revision, err error) {
	if r.Position, err = s.Create(ctx, r); err != nil {
		return nil, nil, err
	}
	r.Revision = 1
	newest := registry.Revision{ID: r.ID, Revision: 1, Position: r.Position, Listed: r.Listed,
		Change: []byte("imported "), Whole: fmt.Appendf(nil, "whole %s", r.Body)}
	if !changed {
		return nil, []registry.Revision{newest}, nil
	}
	old := registry.Revision{ID: r.ID, Revision: 1, Position: r.Position, Change: []byte("creation")}
	if r.Position, err = s.Replace(ctx, r); err != nil {
		return nil, nil, err
	}
	change := registry.Revision{ID: r.ID, Revision: 2, Position: r.Position, Change: []byte("change")}
	newest.Revision, newest.Position, newest.Before = 2, r.Position, old.Position
	newest.Change = []byte("imported change")
	return []registry.Revision{old, change}, []registry.Revision{newest, old}, nil
}

// checkOlder checks a file of older at any moment of its upgrade. It has no fault.
func checkOlder(t *testing.T, path string) {
	t.Helper()
	assets, faults := Check(path, nil, func(registry.Record) (string, error) { return "UA-2026-11-20-000000", nil })
	if assets != 3*upgradeBatch || len(faults) > 0 {
		t.Fatalf("got %d assets and %v, want %d and no fault", assets, faults, 3*upgradeBatch)
	}
}

// TestAFileOfTheFormatBeforeGetsARecord upgrades a file. The upgrade is interrupted
// several times.
func TestAFileOfTheFormatBeforeGetsARecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	want := older(t, path)
	checkOlder(t, path)
	interrupt := make(chan struct{})
	close(interrupt)
	if _, err := Open(path, Options{Now: time.Now, Interrupt: interrupt}); !errors.Is(err, errInterrupted) {
		t.Errorf("got %v, want %v", err, errInterrupted)
	}
	stops := 0
	stopping := func(r registry.Record, change []byte) (described, whole []byte, err error) {
		if stops++; stops%(upgradeBatch+100) == 0 {
			return nil, nil, errors.New("interrupted")
		}
		return append([]byte("imported "), change...), append([]byte("whole "), r.Body...), nil
	}
	var s *Store
	interrupted := 0
	for ; s == nil; interrupted++ {
		checkOlder(t, path)
		var err error
		if s, err = Open(path, Options{Now: time.Now, Import: stopping}); err != nil && s != nil || interrupted > 10 {
			t.Fatalf("got %v, %v; want a store or an error", s, err)
		}
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		checkOlder(t, path)
	}()
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
