package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// TestCheckReportsDamagedAndMissingReferences checks a store with three references: lot-1 of an asset, lot-2 of
// a removed draft, and lot-3 of a creation that was interrupted before it stored an asset. Check must report the
// damage of each case, and must report nothing if nothing is damaged.
func TestCheckReportsDamagedAndMissingReferences(t *testing.T) {
	lot := func(n int) []byte { return []byte(registry.ReferenceKey("one", fmt.Sprint("lot-", n))) }
	set := func(n int, value string) func(*bbolt.Bucket, string) error {
		return func(b *bbolt.Bucket, _ string) error { return b.Put(lot(n), []byte(value)) }
	}
	for _, c := range []struct {
		name   string
		damage func(b *bbolt.Bucket, asset string) error
		want   string // part of the text of the faults; "": no fault
	}{
		{"nothing is damaged", func(*bbolt.Bucket, string) error { return nil }, ""},
		{"the reference of an asset is missing", func(b *bbolt.Bucket, _ string) error { return b.Delete(lot(1)) },
			"does not stand for it"},
		{"the reference of an asset stands for another one", set(1, storetest.NewID()), "does not stand for it"},
		{"the reference of a removed draft is missing", func(b *bbolt.Bucket, _ string) error { return b.Delete(lot(2)) },
			"does not stand for it"},
		{"a reference stands for nothing that is an id", set(3, "half"), "stands for no id"},
		{"an asset has two references", func(b *bbolt.Bucket, asset string) error { return b.Put(lot(3), []byte(asset)) },
			"has another one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, asset := withReferences(t)
			s, err := Open(path, Options{Now: time.Now})
			expect.OK(t, err)
			err = s.file.Update(func(tx *bbolt.Tx) error { return c.damage(tx.Bucket(referenceBucket), asset) })
			expect.OK(t, errors.Join(err, s.Close()))
			_, faults := Check(path, nil, func(registry.Record) (string, string, error) {
				return "UA-AR-DGF-2026-11-20-000001", "one", nil // all assets have this identifier and this broker
			})
			got := fmt.Sprint(errors.Join(faults...))
			if c.want == "" && len(faults) != 0 || !strings.Contains(got, c.want) {
				t.Errorf("got faults %s, want %q", got, c.want)
			}
		})
	}
}

// withReferences returns the path of a closed store, and the id of the asset with the reference lot-1.
func withReferences(t *testing.T) (path, asset string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "assets.db")
	s := expect.Get(Open(path, Options{Now: time.Now}))(t)
	defer func() {
		expect.Try(t, s.Close())
	}()
	storetest.Refer(t, s, "lot-2", true)
	expect.Get(s.ClaimReference(t.Context(), registry.ReferenceKey("one", "lot-3"), "", storetest.NewID()))(t)
	return path, storetest.Refer(t, s, "lot-1", false)
}
