package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/dataformat"
	"asset-registry/shared/testing/expect"
)

// TestFilesOfOtherFormatsAreRefused puts another format name into a file: each name from before the first release, and
// some other names. The refusal must be one line, and must name the version that reads the file.
func TestFilesOfOtherFormatsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	s := expect.Get(Open(path, Options{Now: time.Now}))(t)
	expect.OK(t, s.Close())
	for _, name := range []string{
		"asset-registry assets 1", "asset-registry assets 2", "asset-registry assets 3", "asset-registry assets 4",
		"asset-registry assets 6", "asset-registry tokens 3", "",
	} {
		db, err := bbolt.Open(path, 0o600, nil)
		expect.OK(t, err)
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte(name)) })
		expect.OK(t, errors.Join(err, db.Close()))
		want := fmt.Sprintf("%q, not %q: the commit %s ", name, format, dataformat.UpgradesCommit)
		_, err = Open(path, Options{Now: time.Now})
		if text := fmt.Sprint(err); !strings.Contains(text, want) || strings.Contains(text, "\n") {
			t.Errorf("open %q: got %v, want one line with %q", name, err, want)
		}
		_, faults := Check(path, nil, func(registry.Record) (string, string, error) { return "", "", nil })
		if text := fmt.Sprint(faults); len(faults) != 1 || !strings.Contains(text, want) {
			t.Errorf("check %q: got %v, want one line with %q", name, faults, want)
		}
	}
}
