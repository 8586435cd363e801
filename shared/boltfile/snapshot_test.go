package boltfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/shared/testing/expect"
)

// stopsNobody checks that an open read transaction does not stop writes and reads of a file. The writes make the file
// many times as large as the part that bbolt maps at first.
func stopsNobody(t *testing.T, f *File, bucket []byte) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		for i := range byte(100) {
			err := f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte{i}, make([]byte, 1<<20)) })
			read := f.View(func(tx *bbolt.Tx) error {
				if tx.Bucket(bucket).Get([]byte{i}) == nil {
					return errors.New("the write is missing")
				}
				return nil
			})
			if err := errors.Join(err, read); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		expect.Try(t, err)
	case <-time.After(time.Minute): // a hundred writes of 1 MiB take a second
		t.Error("writes and reads wait, want them to go on")
	}
}

// stopped receives a copy, but never accepts its bytes.
type stopped struct{ asked, released chan struct{} }

var errReleased = errors.New("the receiver has gone")

func (s stopped) Write([]byte) (int, error) {
	close(s.asked)
	<-s.released
	return 0, errReleased
}

func TestAReceiverThatStopsStopsNobody(t *testing.T) {
	dir, bucket := t.TempDir(), []byte("b")
	f := mustOpen(t, filepath.Join(dir, "f"), "test 1", bucket)
	r := stopped{make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- f.Snapshot(func(int64) (io.Writer, error) { return r, nil }) }()
	<-r.asked
	stopsNobody(t, f, bucket)
	close(r.released)
	expect.Err(t, <-ended, errReleased, "")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got entries %v, %v; want the file alone", entries, err)
	}
}

func TestALongReaderStopsNobody(t *testing.T) {
	bucket := []byte("b")
	f := mustOpen(t, filepath.Join(t.TempDir(), "f"), "test 1", bucket)
	reading, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- f.View(func(*bbolt.Tx) error { close(reading); <-end; return nil })
	}()
	<-reading
	stopsNobody(t, f, bucket)
	close(end)
	expect.Try(t, <-ended)
}

func TestASnapshotIsTheFile(t *testing.T) {
	dir, bucket := t.TempDir(), []byte("b")
	f := mustOpen(t, filepath.Join(dir, "f"), "test 1", bucket)
	expect.OK(t, f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte("k"), []byte("v")) }))
	var text bytes.Buffer
	var size int64
	err := f.Snapshot(func(n int64) (io.Writer, error) { size = n; return &text, nil })
	if err != nil || size != int64(text.Len()) {
		t.Fatalf("got %d bytes, %v; want %d", text.Len(), err, size)
	}
	path := filepath.Join(dir, "copy")
	expect.OK(t, os.WriteFile(path, text.Bytes(), 0o600))
	expect.Try(t, mustOpen(t, path, "test 1", bucket).View(func(tx *bbolt.Tx) error {
		if got := tx.Bucket(bucket).Get([]byte("k")); string(got) != "v" {
			t.Errorf("got %q, want %q", got, "v")
		}
		return nil
	}))
}
