package boltstore

import (
	"context"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// claim is a call of ClaimReference that waits for its transaction.
type claim struct{ key, from, to string }

// ClaimReference implements registry.Store. It writes the new id (to) only if the reference still stands for the
// old id (from).
func (s *Store) ClaimReference(ctx context.Context, key, from, to string) (id string, err error) {
	for range 2 { // the second round reads what the first one has stored
		err = s.file.View(func(tx *bbolt.Tx) error {
			id = string(tx.Bucket(referenceBucket).Get([]byte(key)))
			return nil
		})
		if err != nil || id != from {
			return id, err
		}
		w := &write{Record: registry.Record{ID: to}, claim: &claim{key, from, to}}
		if _, err = s.submit(ctx, w); err != nil {
			return "", err
		}
	}
	return to, nil
}

// apply makes the reference stand for the new id, unless another claim was faster.
func (c *claim) apply(references *bbolt.Bucket) error {
	if string(references.Get([]byte(c.key))) != c.from {
		return nil
	}
	return references.Put([]byte(c.key), []byte(c.to))
}
