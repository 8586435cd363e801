package boltstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// Horizon returns the newest position. Every change up to it is stored, and no change
// that is stored later has a position up to it. It is 0 in an empty store.
func (s *Store) Horizon(ctx context.Context) (position int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
		if value := tx.Bucket(stateBucket).Get(lastKey); value != nil {
			position = positionOf(value)
		}
		return nil
	})
	return position, err
}

// Range returns listed assets in the order of their ids. Each call is one short read
// transaction.
func (s *Store) Range(ctx context.Context, q registry.RangeQuery) (page registry.RangePage, err error) {
	if err := ctx.Err(); err != nil {
		return page, err
	}
	from, _ := registry.ParseID(q.From) // nil seeks the first
	err = s.file.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(assetBucket).Cursor()
		most := registry.AnySize // the first body always fits
		size := 0
		key, value := cursor.Seek(from)
		for looked := 0; key != nil && looked < q.Limit; looked++ {
			entry, err := listedEntry(key, value, most)
			if errors.Is(err, registry.ErrLarge) {
				break // the page is full
			}
			if err != nil {
				return fmt.Errorf("asset %x: %w", key, err)
			}
			if entry.Body != nil {
				page.Entries = append(page.Entries, entry)
				size += len(entry.Body)
				most = q.Bytes - size
			}
			key, value = cursor.Next()
		}
		page.Next = hex.EncodeToString(key)
		return nil
	})
	return page, err
}

// listedEntry returns the entry of a stored asset, without a body if the asset is not
// listed. It returns registry.ErrLarge for a body of more than most bytes.
func listedEntry(key, value []byte, most int) (registry.Entry, error) {
	h, err := decodeHeader(value)
	if err != nil || !h.listed {
		return registry.Entry{}, err
	}
	r, err := decode(hex.EncodeToString(key), value, most)
	return registry.Entry{ID: r.ID, Position: r.Position, Body: r.Body}, err
}
