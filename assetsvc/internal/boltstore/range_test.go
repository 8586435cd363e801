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
	"asset-registry/shared/testing/expect"
)

func TestRange(t *testing.T) {
	dir := t.TempDir()
	storetest.RunRange(t, func(t *testing.T, name string, now func() time.Time) storetest.RangeStore {
		t.Helper()
		s := expect.Get(Open(filepath.Join(dir, filepath.Base(t.Name())+name), Options{Now: now}))(t)
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
		expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error { return damage(tx, key) }))
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
	expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(stateBucket).Put(headKey, tx.Bucket(stateBucket).Get(headKey)[:headHeader])
	}))
	expect.ErrOf(t, boltfile.ErrDamaged, "head")(s.LogHead(t.Context()))
	if stored, err := s.ExtendLog(t.Context(), publiclog.Head{}, nil); !errors.Is(err, boltfile.ErrDamaged) || stored {
		t.Errorf("extend: got %v, %v; want %v", stored, err, boltfile.ErrDamaged)
	}
}
