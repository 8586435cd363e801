package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnAdminKeyCreatesNoDataDirectory(t *testing.T) {
	parent, empty := t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(parent, "typo"), filepath.Join(parent, "a", "b"), empty} {
		_, err := AdminKey(t.Context(), dir, "Olha")
		if err == nil || !strings.Contains(err.Error(), "is no data directory") {
			t.Errorf("%s: got %v, want an error that there is no data", dir, err)
		}
	}
	for _, dir := range []string{parent, empty} {
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("got %v, %v in %s, want nothing", made, err, dir)
		}
	}
}
