package durable

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
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
				expect.Err(t, err, syscall.ENOSPC, "%s of %s", c.name, name)
			}
			got := tree(t, dir)
			delete(got, "filler")
			expect.NoDiff(t, cmp.Diff(map[string]string{"f": "old"}, got), "%s of %s", c.name, name)
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
		expect.Err(t, c.write(file, []byte("new")), syscall.EIO, "%s", c.name)
		expect.NoDiff(t, cmp.Diff(want, tree(t, dir)), "%s", c.name)
	}
	expect.Err(t, SyncDirectory(t.TempDir()), syscall.EIO, "SyncDirectory")
}
