package boltstore

import (
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/authsvc/internal/storetest"
)

func TestAdminConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.RunAdmin(t, func(t *testing.T, name string) storetest.AdminStore {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, func(t *testing.T, name string) storetest.Store {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}
