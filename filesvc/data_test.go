package filesvc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestCheck damages the bytes and the metadata of files, one after the other. Check must find each damage.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	db, files := filepath.Join(dir, "files.db"), filepath.Join(dir, "files")
	t.Run("upload", func(t *testing.T) {
		r := start(t, func(c *Config) { c.Store, c.Bytes = "file:"+db, files })
		for _, text := range []string{"a", "bb", "ccc"} {
			r.upload(broker, "/upload", "a.txt", "text/plain", text).is(t, "upload", 200, "")
		}
		r.register(broker, `{"data":{"hash":"`+hash("x")+`"}}`).is(t, "register", 201, "")
	})
	check := func(name string, whole bool, want Checked, faults ...string) {
		t.Helper()
		got, found := Check(db, files, secrets, whole)
		isFound := len(found) == len(faults)
		for i := range min(len(found), len(faults)) {
			isFound = isFound && strings.Contains(found[i].Error(), faults[i])
		}
		if got != want || !isFound {
			t.Errorf("%s: got %+v and %v, want %+v and %q", name, got, found, want, faults)
		}
	}
	check("whole", true, Checked{3, 6, 0})
	blobs := map[int64]string{} // names of blobs; the keys are sizes
	paths, err := filepath.Glob(filepath.Join(files, "*", "*"))
	expect.FatalIf(t, err != nil || len(paths) != 3, "got %v, %v, want three files", paths, err)
	for _, path := range paths {
		info := expect.Get(os.Stat(path))(t)
		blobs[info.Size()] = path
	}
	expect.OK(t, os.WriteFile(blobs[1], []byte("x"), 0o600))
	check("other bytes, by length", false, Checked{3, 6, 0})
	check("other bytes", true, Checked{2, 5, 0}, "the bytes have another SHA-256")
	expect.OK(t, os.Truncate(blobs[1], 0))
	check("too short", false, Checked{2, 5, 0}, "got 0 bytes, want 1")
	expect.OK(t, os.Remove(blobs[1]))
	check("missing", false, Checked{2, 5, 0}, "its bytes are missing")
	expect.OK(t, os.Truncate(db, 4096))
	if _, found := Check(db, files, secrets, false); len(found) == 0 {
		t.Error("damaged metadata: got no fault, want one")
	}
}
