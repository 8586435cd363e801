package boltstore

import (
	"io"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/token"
)

// Each calls visit with every record, until it returns an error.
func (s *Store) Each(visit func(token.Record) error) error {
	return s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(recordBucket).ForEach(func(id, text []byte) error {
			r, err := decoded(token.Decode(string(id), text))
			if err != nil {
				return err
			}
			return visit(r)
		})
	})
}

// EachTransfer calls visit with every transfer, until it returns an error.
func (s *Store) EachTransfer(visit func(token.Transfer) error) error {
	return s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(transferBucket).ForEach(func(id, text []byte) error {
			t, err := decoded(token.DecodeTransfer(string(id), text))
			if err != nil {
				return err
			}
			return visit(t)
		})
	})
}

// Snapshot writes the store as it is at one moment (boltfile.File.Snapshot).
func (s *Store) Snapshot(to func(size int64) (io.Writer, error)) error {
	return s.file.Snapshot(to)
}
