package dirstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/filesvc/internal/storetest"
)

func TestConformance(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "files"))
	if err != nil {
		t.Fatal(err)
	}
	storetest.RunBytes(t, s)
}

// TestTidy checks that Tidy keeps a file that another process is writing, and removes a file that a killed
// process left.
func TestTidy(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	written, left := filepath.Join(dir, unfinished, "written"), filepath.Join(dir, unfinished, "left")
	for _, name := range []string{written, left} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	if err := s.Tidy(t.Context(), time.Now().Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(written); err != nil {
		t.Errorf("got %v, want the file that is being written", err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("got the file that was left, want none")
	}
}
