package boltstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// Contents has the counts of a store's contents, but not the assets.
type Contents struct {
	Assets  int
	Changes int            // changes in the record
	Last    int64          // newest position; 0 in an empty store
	Numbers map[string]int // day -> newest number
}

// Contents returns the current counts.
func (s *Store) Contents() (Contents, error) {
	c := Contents{Numbers: map[string]int{}}
	err := s.file.View(func(tx *bbolt.Tx) error {
		c.Assets = tx.Bucket(assetBucket).Stats().KeyN
		c.Changes = tx.Bucket(changeBucket).Stats().KeyN
		if value := tx.Bucket(stateBucket).Get(lastKey); value != nil {
			c.Last = positionOf(value)
		}
		return tx.Bucket(numberBucket).ForEach(func(day, value []byte) error {
			c.Numbers[string(day)] = int(positionOf(value))
			return nil
		})
	})
	return c, err
}

// Scan returns up to limit assets, ordered by id, with ids greater than the given one. An empty id starts at the first
// asset.
func (s *Store) Scan(ctx context.Context, after string, limit int) ([]registry.Record, error) {
	var records []registry.Record
	err := s.scan(ctx, after, limit, func(key, value []byte) error {
		r, err := decode(hex.EncodeToString(key), value, registry.AnySize)
		if err != nil {
			return err
		}
		records = append(records, r)
		return nil
	})
	return records, err
}

// SealedAfter returns up to limit token records, ordered by asset id, for the assets with ids greater than the given
// one. An empty id starts at the first asset.
func (s *Store) SealedAfter(ctx context.Context, after string, limit int) ([]registry.Sealed, error) {
	var found []registry.Sealed
	err := s.scan(ctx, after, limit, func(key, value []byte) error {
		h, err := decodeHeader(value)
		if err != nil {
			return err
		}
		sealed := string(value[headerSize : headerSize+h.sealed])
		found = append(found, registry.Sealed{ID: hex.EncodeToString(key), Sealed: sealed})
		return nil
	})
	return found, err
}

// scan calls visit() for up to limit stored assets, ordered by id, with ids greater than the given
// one. It stops at the first error of visit.
func (s *Store) scan(
	ctx context.Context, after string, limit int, visit func(key, value []byte) error,
) error {
	return s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(assetBucket).Cursor()
		key, value := cursor.First()
		if start, ok := registry.ParseID(after); ok {
			if key, value = cursor.Seek(start); bytes.Equal(key, start) {
				key, value = cursor.Next()
			}
		}
		for n := 0; key != nil && n < limit; n++ {
			if err := visit(key, value); err != nil {
				return fmt.Errorf("read asset %x: %w", key, err)
			}
			key, value = cursor.Next()
		}
		return nil
	})
}

// Reseal replaces the token record of an asset if the asset still has the old token record. Otherwise it does
// nothing.
func (s *Store) Reseal(ctx context.Context, old, anew registry.Sealed) error {
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		key, _ := registry.ParseID(old.ID)
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

// Snapshot writes a copy of the store as it is at one moment (boltfile.File.Snapshot).
func (s *Store) Snapshot(to func(size int64) (io.Writer, error)) error {
	return s.file.Snapshot(to)
}
