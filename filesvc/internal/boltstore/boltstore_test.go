package boltstore

import (
	"path/filepath"
	"testing"

	"asset-registry/filesvc/internal/storetest"
)

func TestConformance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "files.db")
	var last *Store
	open := func(t *testing.T) storetest.Metadata {
		t.Helper()
		if last != nil {
			if err := last.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		last = s
		return s
	}
	storetest.RunMetadata(t, open, open)
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}
