package boltstore

import (
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/testing/expect"
)

func TestRange(t *testing.T) { storetest.RunRange(t, opener[storetest.RangeStore](t)) }

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
