package boltstore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/boltfile"
)

func TestRange(t *testing.T) {
	dir := t.TempDir()
	storetest.RunRange(t, func(t *testing.T, name string, now func() time.Time) storetest.RangeStore {
		t.Helper()
		s, err := Open(filepath.Join(dir, filepath.Base(t.Name())+name), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// TestARangeWithADamagedAssetIsAnError damages a listed asset in two ways. Range must return an error. If Range skipped
// the asset, a copy of the registry would lack the asset.
func TestARangeWithADamagedAssetIsAnError(t *testing.T) {
	for _, damage := range []func(tx *bbolt.Tx, key []byte) error{
		flipBit,
		func(tx *bbolt.Tx, key []byte) error { return tx.Bucket(assetBucket).Put(key, []byte("half")) },
	} {
		s, _, id, _ := twoAssets(t)
		key, _ := registry.ParseID(id)
		if err := s.file.Update(func(tx *bbolt.Tx) error { return damage(tx, key) }); err != nil {
			t.Fatal(err)
		}
		page, err := s.Range(t.Context(), registry.RangeQuery{Limit: 10, Bytes: registry.AnySize})
		if !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("range: got %v, %v; want %v", page, err, boltfile.ErrDamaged)
		}
	}
}

// TestADamagedHeadOfTheLogIsAnError damages the head of the public log. Both reading and extending the log must then
// return an error. If the store reported no head instead, the log would start again from nothing.
func TestADamagedHeadOfTheLogIsAnError(t *testing.T) {
	s, _, _, _ := twoAssets(t)
	if stored, err := s.ExtendLog(t.Context(), publiclog.Head{}, nil); err != nil || !stored {
		t.Fatalf("extend: got %v, %v; want true", stored, err)
	}
	if err := s.file.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(stateBucket).Put(headKey, tx.Bucket(stateBucket).Get(headKey)[:headHeader])
	}); err != nil {
		t.Fatal(err)
	}
	if head, err := s.LogHead(t.Context()); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("head: got %+v, %v; want %v", head, err, boltfile.ErrDamaged)
	}
	if stored, err := s.ExtendLog(t.Context(), publiclog.Head{}, nil); !errors.Is(err, boltfile.ErrDamaged) || stored {
		t.Errorf("extend: got %v, %v; want %v", stored, err, boltfile.ErrDamaged)
	}
}
