package boltstore

import (
	"path/filepath"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/storetest"
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
