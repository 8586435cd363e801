package durable

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/disktest"
)

func TestAFullDiskLeavesTheFile(t *testing.T) {
	dir := disktest.New(t, 1)
	file := filepath.Join(dir, "f")
	write(t, file, "old", 0o600)
	disktest.Fill(t, dir)
	for _, c := range writers {
		for _, name := range []string{"f", "another"} {
			err := c.write(filepath.Join(dir, name), make([]byte, 10_000))
			if name == "f" && c.present == nil || name != "f" && c.fresh == nil {
				if !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%s of %s: got %v, want %v", c.name, name, err, syscall.ENOSPC)
				}
			}
			got := tree(t, dir)
			delete(got, "filler")
			if diff := cmp.Diff(map[string]string{"f": "old"}, got); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", c.name, name, diff)
			}
		}
	}
}

// TestABrokenDiskLeavesTheFile writes on a disk that cannot sync. No file may get its final name before its bytes are
// synced, and the name itself counts only after the directory was synced.
func TestABrokenDiskLeavesTheFile(t *testing.T) {
	if !disktest.BrokenSync(t) {
		return
	}
	for _, c := range writers {
		dir, want := t.TempDir(), map[string]string{}
		file := filepath.Join(dir, "f")
		if c.present == nil {
			write(t, file, "old", 0o600)
			want["f"] = "old"
		}
		if err := c.write(file, []byte("new")); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: got %v, want %v", c.name, err, syscall.EIO)
		}
		if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if err := SyncDirectory(t.TempDir()); !errors.Is(err, syscall.EIO) {
		t.Errorf("SyncDirectory: got %v, want %v", err, syscall.EIO)
	}
}
