package boltfile

import (
	"io"

	"go.etcd.io/bbolt"
)

// Snapshot writes a consistent copy of the file, which Open can open. Reads and
// writes go on meanwhile. to returns the writer for a copy of size bytes.
func (f *File) Snapshot(to func(size int64) (io.Writer, error)) error {
	return f.View(func(tx *bbolt.Tx) error {
		w, err := to(tx.Size())
		if err != nil {
			return err
		}
		_, err = tx.WriteTo(w)
		return err
	})
}
