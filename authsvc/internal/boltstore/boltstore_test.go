package boltstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/storetest"
	"asset-registry/authsvc/internal/token"
)

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, func(t *testing.T, name string) token.Store {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	used, foreign, other := filepath.Join(dir, "used"), filepath.Join(dir, "foreign"), filepath.Join(dir, "other")
	s, err := Open(used)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.WriteFile(foreign, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(other, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, says string }{
		"a file in use":                {used, "in use"},
		"a file of no database":        {foreign, "invalid"},
		"a database of something else": {other, "another program"},
		"a folder":                     {dir, dir},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(c.path)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}
