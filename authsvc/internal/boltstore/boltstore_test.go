package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/storetest"
	"asset-registry/shared/dataformat"
	"asset-registry/shared/testing/expect"
)

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, func(t *testing.T, name string) storetest.Store {
		t.Helper()
		s, err := Open(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+name), Options{})
		expect.OK(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// TestFilesOfOtherFormatsAreRefused takes a file of the store, and replaces the name of its format by other names,
// one by one. Some of them are the names of formats from before the first release. Open must refuse the file each
// time with one line, which names the version that can read the file.
func TestFilesOfOtherFormatsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.db")
	s, err := Open(path, Options{})
	expect.OK(t, err)
	expect.OK(t, s.Close())
	for _, name := range []string{
		"asset-registry tokens 1", "asset-registry tokens 2", "asset-registry tokens 4", "asset-registry assets 5", "",
	} {
		db, err := bbolt.Open(path, 0o600, nil)
		expect.OK(t, err)
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte(name)) })
		expect.OK(t, errors.Join(err, db.Close()))
		want := fmt.Sprintf("%q, not %q: the commit %s ", name, format, dataformat.UpgradesCommit)
		_, err = Open(path, Options{})
		if text := fmt.Sprint(err); !strings.Contains(text, want) || strings.Contains(text, "\n") {
			t.Errorf("open %q: got %v, want one line with %q", name, err, want)
		}
		_, _, faults := Check(path, nil)
		if text := fmt.Sprint(faults); len(faults) != 1 || !strings.Contains(text, want) {
			t.Errorf("check %q: got %v, want one line with %q", name, faults, want)
		}
	}
}
