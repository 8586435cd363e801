package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

func TestConformance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "files.db")
	var last *Store
	open := func(t *testing.T) storetest.Metadata {
		t.Helper()
		if last != nil {
			expect.OK(t, last.Close())
		}
		s := expect.Get(Open(path, nil, nil))(t)
		last = s
		return s
	}
	storetest.RunMetadata(t, open, open)
	expect.Try(t, last.Close())
}

// TestAStoreWithoutListsOfBrokersGetsThem opens a store of a version that had no such lists.
func TestAStoreWithoutListsOfBrokersGetsThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "files.db")
	open := func() *Store {
		s := expect.Get(Open(path, nil, nil))(t)
		return s
	}
	s := open()
	for i, broker := range []string{"a", "b", "a"} {
		f := file.File{ID: fmt.Sprint(i), Broker: broker, State: file.Stored, Revision: 1}
		expect.OK(t, s.Create(t.Context(), f))
	}
	expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(ownBucket) }))
	expect.OK(t, s.Close())
	s = open()
	gone := ownKey("a", "of a file that a former version has deleted")
	err := s.file.Update(func(tx *bbolt.Tx) error {
		own := tx.Bucket(ownBucket)
		return errors.Join(own.Delete(ownKey("a", "2")), own.Put(gone, []byte{}))
	})
	expect.OK(t, errors.Join(err, s.Close()))
	s = open()
	defer s.Close()
	if own, err := s.Own(t.Context(), "a", "", 10); err != nil || len(own) != 2 || own[1].ID != "2" {
		t.Errorf("got %v, %v; want the files 0 and 2", own, err)
	}
}
