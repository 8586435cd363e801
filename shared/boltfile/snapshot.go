package boltfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"asset-registry/shared/durable"
)

// Snapshot writes a consistent copy of the file, which Open can open. It first copies the file into a second file in
// the same directory, which has no name and needs as much room on the disk. It then calls the function `to` with the
// size of the copy in bytes, and writes the copy to the writer that this function returns. A slow writer holds up
// neither reads nor writes.
func (f *File) Snapshot(to func(size int64) (io.Writer, error)) (err error) {
	path := f.own.Name()
	beside, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+durable.Unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, beside.Close()) }()
	if err := os.Remove(beside.Name()); err != nil { // so that nothing is left if the process is killed
		return err
	}
	var size int64
	if err := f.copyTo(func(n int64) (io.Writer, error) { size = n; return beside, nil }); err != nil {
		return fmt.Errorf("copy the file: %w", err)
	}
	if _, err := beside.Seek(0, io.SeekStart); err != nil {
		return err
	}
	w, err := to(size)
	if err == nil {
		_, err = io.Copy(w, beside)
	}
	return err
}

// copyTo writes the copy in one read transaction, which ends only when the writer has taken all bytes.
func (f *File) copyTo(to func(size int64) (io.Writer, error)) error {
	return f.View(func(tx *bbolt.Tx) error {
		w, err := to(tx.Size())
		if err != nil {
			return err
		}
		_, err = tx.WriteTo(w)
		return err
	})
}
