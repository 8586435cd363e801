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
)

// disk returns a directory that is a small file system of its own.
func disk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("who runs this test may not mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all room of a disk, and returns how to give it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for block := bytes.Repeat([]byte("x"), 4096); ; {
		if _, err := file.Write(block); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func put(f *File, key string, size int) error {
	return f.Batch(func(tx *bbolt.Tx) error { return tx.Bucket(bigBucket).Put([]byte(key), make([]byte, size)) })
}

func TestAFullDiskIsToldAndLeft(t *testing.T) {
	dir := disk(t)
	f, err := Open(filepath.Join(dir, "file"), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Ready(t.Context()); err != nil {
		t.Fatalf("got %v, want it ready", err)
	}
	for round := range 3 {
		free := fill(t, dir)
		stored := map[string]bool{}
		var refused error
		for i := 0; refused == nil; i++ {
			key := fmt.Sprintf("%d %d", round, i)
			if refused = put(f, key, 50_000); refused == nil {
				stored[key] = true
			}
		}
		if !strings.Contains(refused.Error(), "no space left") {
			t.Errorf("got %v, want it to say that no space is left", refused)
		}
		if err := f.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "file: no space left") {
			t.Errorf("ready: got %v, want it to say that no space is left", err)
		}
		var failed sync.WaitGroup
		for i := range 50 { // failures at once and in a row
			failed.Go(func() {
				if put(f, fmt.Sprint("many ", i), 1<<20) == nil {
					t.Error("a large write is stored on a full disk")
				}
			})
		}
		failed.Wait()
		free()
		for end := time.Now().Add(10 * time.Second); f.Ready(t.Context()) != nil; {
			if time.Now().After(end) {
				t.Fatalf("with room again: got %v, want it ready", f.Ready(t.Context()))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := put(f, "after", 50_000); err != nil {
			t.Fatal(err)
		}
		if err := f.View(func(tx *bbolt.Tx) error {
			for key := range stored {
				if tx.Bucket(bigBucket).Get([]byte(key)) == nil {
					t.Errorf("%s was stored and is gone", key)
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if err := f.Update(func(tx *bbolt.Tx) error { // for the next round
			return errors.Join(tx.DeleteBucket(bigBucket), second(tx.CreateBucket(bigBucket)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	path := f.own.Name()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if faults := Check(path, testOptions, func(*bbolt.Tx) []error { return nil }); len(faults) > 0 {
		t.Errorf("got %v, want no damage", faults)
	}
}

func second[T any](_ T, err error) error { return err }

func TestAFullDiskIsNoReasonNotToOpen(t *testing.T) {
	dir := disk(t)
	path := filepath.Join(dir, "file")
	f, err := Open(path, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, dir)
	if f, err = Open(path, testOptions); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Ready(t.Context()); err == nil {
		t.Error("it says that it is ready")
	}
}
