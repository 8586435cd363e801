package boltfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/durable"
	"asset-registry/shared/testing/expect"
)

// mustOpen opens a file and closes it at the end of the test.
func mustOpen(t *testing.T, path, format string, buckets ...[]byte) *File {
	t.Helper()
	db, err := Open(path, Options{Format: format, Buckets: buckets})
	expect.OK(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestOpenFindsWhatItHasMade(t *testing.T) {
	path, bucket := filepath.Join(t.TempDir(), "a"), []byte("b")
	db := mustOpen(t, path, "format 1", bucket)
	expect.OK(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte("k"), []byte("v")) }))
	expect.OK(t, db.Close())
	expect.OK(t, mustOpen(t, path, "format 1", bucket).View(func(tx *bbolt.Tx) error {
		if got := tx.Bucket(bucket).Get([]byte("k")); string(got) != "v" {
			t.Errorf("got %q, want %q", got, "v")
		}
		return nil
	}))
}

func TestOpenMakesTheFileWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	// An earlier process crashed and left half a file.
	expect.OK(t, os.WriteFile(expect.Get(durable.Temporary(path))(t), []byte("half a file"), 0o600))
	mustOpen(t, path, "format 1")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got the folder's entries %v, %v; want the file alone", entries, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	used, another, bare := filepath.Join(dir, "used"), filepath.Join(dir, "another"), filepath.Join(dir, "bare")
	other, text := filepath.Join(dir, "other"), filepath.Join(dir, "text")
	bucket := []byte("b")
	mustOpen(t, used, "format 1", bucket)
	for _, f := range []*File{mustOpen(t, another, "format 2", bucket), mustOpen(t, bare, "format 1")} {
		expect.OK(t, f.Close())
	}
	db, err := bbolt.Open(other, 0o600, nil)
	expect.OK(t, err)
	expect.OK(t, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err }))
	expect.OK(t, db.Close())
	expect.OK(t, os.WriteFile(text, bytes.Repeat([]byte("not a database "), 1000), 0o600))
	for _, c := range []struct{ name, path, says string }{
		{"a file in use", used, "in use"},
		{"a file of another format", another, dataformat.Refusal("format 2", "format 1").Error()},
		{"a file without a bucket", bare, "the bucket b is missing"},
		{"a file of another program", other, "another program"},
		{"a text file", text, "invalid"},
		{"a folder", dir, dir},
		{"a file in a missing folder", filepath.Join(dir, "none", "x"), "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := os.ReadFile(c.path) // fails for a folder, which does not matter
			db, err := Open(c.path, Options{Format: "format 1", Buckets: [][]byte{bucket}})
			if err == nil {
				db.Close()
				t.Fatal("got no error, want one")
			}
			expect.ErrorIf(t, !strings.Contains(err.Error(), c.says), "got %v, want %q in it", err, c.says)
			if after, _ := os.ReadFile(c.path); !bytes.Equal(before, after) {
				t.Error("got the file changed, want it unchanged")
			}
		})
	}
}

// TestFilesAreCreatedAtOnce creates the same file in many goroutines at the same time. They share a process
// id, as the first processes of different containers do. All must succeed, and only one file may remain.
func TestFilesAreCreatedAtOnce(t *testing.T) {
	for range 5 {
		dir := t.TempDir()
		path := filepath.Join(dir, "file.db")
		var creating sync.WaitGroup
		for range 8 {
			creating.Go(func() {
				expect.Try(t, create(path, Options{Format: "format 1", Buckets: [][]byte{[]byte("b")}}))
			})
		}
		creating.Wait()
		db, err := Open(path, Options{Format: "format 1", Buckets: [][]byte{[]byte("b")}})
		expect.Must(t, err, "open what was created")
		expect.OK(t, db.Close())
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("got %v, %v in the directory, want the file alone", left, err)
		}
	}
}
