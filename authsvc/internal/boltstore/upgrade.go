package boltstore

import (
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/apikey"
)

// The buckets in which version 1 of the file kept the keys of commands. The
// upgrade removes them.
var (
	firstKeyBucket   = []byte("keys")      // hash -> key, as apikey.DecodeFirst reads it
	firstKeyIDBucket = []byte("key-names") // id -> hash
)

// upgrade makes unaudited keys of the keys of version 1, in one transaction. Their
// ids and secrets stay.
func (s *Store) upgrade() error {
	var first [][]byte // buckets of version 1
	if err := s.file.View(func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{firstKeyBucket, firstKeyIDBucket} {
			if tx.Bucket(bucket) != nil {
				first = append(first, bucket)
			}
		}
		return nil
	}); err != nil || len(first) == 0 {
		return err
	}
	return s.file.Update(func(tx *bbolt.Tx) error {
		if err := upgradeKeys(tx, time.Now().UTC()); err != nil {
			return err
		}
		for _, bucket := range first {
			if err := tx.DeleteBucket(bucket); err != nil {
				return err
			}
		}
		return nil
	})
}

func upgradeKeys(tx *bbolt.Tx, now time.Time) error {
	first := tx.Bucket(firstKeyBucket)
	if first == nil {
		return nil
	}
	return first.ForEach(func(hash, text []byte) error {
		holder, err := decoded(apikey.DecodeFirst(text))
		if err != nil || tx.Bucket(hashBucket).Get(hash) != nil {
			return err
		}
		k := apikey.NewUnaudited(string(hash), holder, now)
		for err = addKey(tx, k); errors.Is(err, apikey.ErrExists); err = addKey(tx, k) {
			k.ID += apikey.RenameSuffix
		}
		return err
	})
}
