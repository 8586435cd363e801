package boltstore

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// TestAWriteThatBboltRefusesFails makes writes with keys that bbolt does not take. Each write must fail with the error
// of bbolt, and must leave nothing in any bucket.
func TestAWriteThatBboltRefusesFails(t *testing.T) {
	long := strings.Repeat("x", bbolt.MaxKeySize+1)
	create := func(s *Store, r registry.Record) error { return errorOf(s.Create(t.Context(), r)) }
	for _, c := range []struct {
		name string
		do   func(s *Store, r registry.Record) error
		want error
	}{
		{"an owner", func(s *Store, r registry.Record) error {
			r.Owner = long
			return create(s, r)
		}, bolterrors.ErrKeyTooLarge},
		{"a state", func(s *Store, r registry.Record) error {
			r.State = asset.Status(long)
			return create(s, r)
		}, bolterrors.ErrKeyTooLarge},
		{"a number of a day without a name", func(s *Store, r registry.Record) error {
			if _, err := s.NextNumber(t.Context(), ""); err != nil {
				t.Error(err)
			}
			return create(s, r)
		}, bolterrors.ErrKeyRequired},
		{"a reference", func(s *Store, r registry.Record) error {
			return errorOf(s.ClaimReference(t.Context(), long, "", r.ID))
		}, bolterrors.ErrKeyTooLarge},
	} {
		path := filepath.Join(t.TempDir(), "assets.db")
		s := expect.Get(Open(path, Options{Now: time.Now}))(t)
		r := registry.Record{ID: storetest.NewID(), Listed: true, Body: []byte("{}")}
		expect.Err(t, c.do(s, r), c.want, "%s", c.name)
		if stored, err := s.Get(t.Context(), r.ID, registry.AnySize); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s: got the asset %+v, %v; want %v", c.name, stored, err, registry.ErrNotFound)
		}
		expect.Try(t, s.Close())
		if _, faults := Check(path, nil, nil); len(faults) > 0 {
			t.Errorf("%s: got the faults %v afterwards, want none", c.name, faults)
		}
	}
}

// TestAbandonedWritesNeedNoTransaction lets the callers of all writes leave, while another transaction is under way.
// The store must make no transaction for these writes.
func TestAbandonedWritesNeedNoTransaction(t *testing.T) {
	s, hold, begins, goOn := heldStore(t)
	before, _ := s.file.Updates()
	hold()
	first, abandoned := make(chan error, 1), make(chan error, 1)
	go func() {
		first <- errorOf(s.Create(t.Context(), registry.Record{ID: storetest.NewID(), Body: []byte("{}")}))
	}()
	<-begins
	gone, leave := context.WithCancel(t.Context())
	go func() {
		abandoned <- errorOf(s.Create(gone, registry.Record{ID: storetest.NewID(), Body: []byte("{}")}))
	}()
	for len(s.queue) == 0 {
		runtime.Gosched()
	}
	leave()
	expect.Err(t, <-abandoned, context.Canceled, "the caller who leaves")
	close(goOn)
	expect.Try(t, errors.Join(<-first, s.Close()))
	if after, _ := s.file.Updates(); after != before+1 {
		t.Errorf("got %d transactions, want 1", after-before)
	}
}

// TestPagesOfFeedsAreFull creates many assets. In the buckets whose new keys come only at the end,
// all pages but the last one must be full. Half-full pages would double the size of these buckets.
func TestPagesOfFeedsAreFull(t *testing.T) {
	s := expect.Get(Open(filepath.Join(t.TempDir(), "assets.db"), Options{Now: time.Now}))(t)
	defer s.Close()
	var creations sync.WaitGroup
	for i := range 800 { // the store writes them in batches
		creations.Go(func() {
			r := registry.Record{ID: storetest.NewID(), Listed: true, Test: i%2 == 0, Change: []byte("c")}
			if _, err := s.Create(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	creations.Wait()
	expect.OK(t, s.file.View(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{realBucket, testBucket, changeBucket} {
			b, page := tx.Bucket(name).Stats(), tx.DB().Info().PageSize
			if full := b.LeafAlloc - page; full < 2*page || b.LeafInuse < full*9/10 {
				t.Errorf("%s: got %d bytes used of %d, want at least two full pages and a last one", name, b.LeafInuse, b.LeafAlloc)
			}
		}
		return nil
	}))
}
