package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
)

func TestAFullDiskIsToldAndLeft(t *testing.T) {
	dir := disktest.New(t, 16)
	f, err := Open(filepath.Join(dir, "file"), testOptions)
	expect.OK(t, err)
	defer f.Close()
	if err := f.Ready(t.Context()); err != nil {
		t.Fatalf("got %v, want it ready", err)
	}
	for round := range 3 {
		free := disktest.Fill(t, dir)
		stored := map[string]bool{}
		var refused error
		for i := 0; refused == nil; i++ {
			key := fmt.Sprintf("%d %d", round, i)
			if refused = put(f, key, 50_000); refused == nil {
				stored[key] = true
			}
		}
		expect.ErrorIf(t, !strings.Contains(refused.Error(), "no space left"),
			"write: got %v, want %q in it", refused, "no space left")
		small := 0 // the number of small writes that find room in the file
		for i := range 20 {
			if put(f, fmt.Sprint("small ", i), 1) == nil {
				small++
			}
		}
		t.Logf("%d of 20 small writes to a full disk succeeded", small)
		expect.Says(t, f.Ready(t.Context()), "file: no space left", "ready")
		var failed sync.WaitGroup
		for i := range 50 { // some of these writes fail at the same time, others one after another
			failed.Go(func() {
				if put(f, fmt.Sprint("many ", i), 1<<20) == nil {
					t.Error("a large write to a full disk: got no error, want one")
				}
			})
		}
		failed.Wait()
		free()
		for end := time.Now().Add(10 * time.Second); f.Ready(t.Context()) != nil; {
			if time.Now().After(end) {
				t.Fatalf("10 s after space is free again: got %v, want it ready", f.Ready(t.Context()))
			}
			time.Sleep(10 * time.Millisecond)
		}
		expect.OK(t, put(f, "after", 50_000))
		expect.Try(t, f.View(func(tx *bbolt.Tx) error {
			for key := range stored {
				expect.ErrorIf(t, tx.Bucket(bigBucket).Get([]byte(key)) == nil, "stored key %s: got no value, want it", key)
			}
			return nil
		}))
		if err := f.Update(func(tx *bbolt.Tx) error { // this change empties the bucket for the next round
			return errors.Join(tx.DeleteBucket(bigBucket), second(tx.CreateBucket(bigBucket)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	path := f.own.Name()
	expect.OK(t, f.Close())
	if faults := Check(path, testOptions, func(*bbolt.Tx) []error { return nil }); len(faults) > 0 {
		t.Errorf("got %v, want no damage", faults)
	}
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

func TestAFullDiskIsNoReasonNotToOpen(t *testing.T) {
	dir := disktest.New(t, 16)
	path := filepath.Join(dir, "file")
	f, err := Open(path, testOptions)
	expect.OK(t, err)
	expect.OK(t, f.Close())
	disktest.Fill(t, dir)
	f, err = Open(path, testOptions)
	expect.OK(t, err)
	defer f.Close()
	expect.Fails(t, f.Ready(t.Context()), "ready")
}

func TestACompactionOnAFullDiskLeavesTheFile(t *testing.T) {
	dir := disktest.New(t, 16)
	path := filepath.Join(dir, "file")
	text, err := os.ReadFile(bloated(t))
	expect.OK(t, err)
	expect.OK(t, os.WriteFile(path, text, 0o600))
	free := disktest.Fill(t, dir)
	if _, _, err := Compact(path); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v, want %q in it", err, "no space left")
	}
	free()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
		t.Errorf("got another file or %v, want the same", err)
	}
	onlyFile(t, path)
	if _, _, err := Compact(path); err != nil || holds(t, path, erasedValue) {
		t.Errorf("with space: got %v, want no error and no erased value", err)
	}
}

// TestABrokenDiskIsTold opens a file on a disk that cannot sync. An earlier process may have failed to sync the newest
// change, so opening must fail.
func TestABrokenDiskIsTold(t *testing.T) {
	const where = "BOLTFILE_TEST_DIR"
	if os.Getenv(where) == "" {
		path := filepath.Join(t.TempDir(), "file")
		f, err := Open(path, testOptions)
		expect.OK(t, err)
		expect.OK(t, errors.Join(put(f, "key", 100_000), f.Close()))
		t.Setenv(where, path)
	}
	if !disktest.BrokenSync(t) {
		return
	}
	path := os.Getenv(where)
	f, err := Open(path, testOptions)
	expect.Err(t, err, syscall.EIO, "")
	if err == nil {
		f.Close()
	}
}
