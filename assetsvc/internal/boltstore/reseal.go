package boltstore

import (
	"context"
	"encoding/hex"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// SealedAfter returns up to limit token records, from the first after an id.
func (s *Store) SealedAfter(ctx context.Context, after string, limit int) ([]registry.Sealed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var found []registry.Sealed
	err := s.file.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(assetBucket).Cursor()
		key, value := cursor.First()
		if start, ok := keyOf(after); ok {
			if key, value = cursor.Seek(start); string(key) == string(start) {
				key, value = cursor.Next()
			}
		}
		for ; key != nil && len(found) < limit; key, value = cursor.Next() {
			h, err := decodeHeader(value)
			if err != nil {
				return fmt.Errorf("read asset %x: %w", key, err)
			}
			found = append(found, registry.Sealed{ID: hex.EncodeToString(key), Sealed: string(value[headerSize : headerSize+h.sealed])})
		}
		return nil
	})
	return found, err
}

// Reseal puts a token record in the place of one that is still the asset's.
func (s *Store) Reseal(ctx context.Context, old, anew registry.Sealed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.Update(func(tx *bbolt.Tx) error {
		key, _ := keyOf(old.ID)
		value := tx.Bucket(assetBucket).Get(key)
		if value == nil {
			return nil
		}
		r, err := decode(old.ID, value, registry.AnySize)
		if err != nil || r.Sealed != old.Sealed {
			return err
		}
		r.Sealed = anew.Sealed
		return tx.Bucket(assetBucket).Put(key, encode(r))
	})
}
