package boltstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// Contents is what a store holds besides assets.
type Contents struct {
	Assets  int
	Last    int64          // newest position
	Numbers map[string]int // day -> newest number
}

// Contents returns what the store holds now.
func (s *Store) Contents() (Contents, error) {
	c := Contents{Numbers: map[string]int{}}
	err := s.file.View(func(tx *bbolt.Tx) error {
		c.Assets = tx.Bucket(assetBucket).Stats().KeyN
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

// Scan returns up to limit assets, with their changes, in the order of their
// ids, from the first after an id; "" is before all.
func (s *Store) Scan(ctx context.Context, after string, limit int) ([]registry.History, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var records []registry.History
	err := s.file.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(assetBucket).Cursor()
		key, value := cursor.First()
		if start, ok := keyOf(after); ok {
			if key, value = cursor.Seek(start); string(key) == string(start) {
				key, value = cursor.Next()
			}
		}
		for ; key != nil && len(records) < limit; key, value = cursor.Next() {
			r, err := decode(hex.EncodeToString(key), value, registry.AnySize)
			if err != nil {
				return fmt.Errorf("read asset %x: %w", key, err)
			}
			records = append(records, registry.History{Record: r, Log: readLog(tx, key)})
		}
		return nil
	})
	return records, err
}

// Snapshot writes the store as it is at one moment (boltfile.File.Snapshot).
func (s *Store) Snapshot(to func(size int64) (io.Writer, error)) error {
	return s.file.Snapshot(to)
}
