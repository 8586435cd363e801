package boltfile

import (
	"io"

	"go.etcd.io/bbolt"
)

// Snapshot writes the file as it is at one moment, for Open to take, while reads
// and writes go on. It asks for where to, with the file's size in bytes.
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
