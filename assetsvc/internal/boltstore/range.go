package boltstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// leastInLeaf is how many assets a leaf of bbolt has at least.
const leastInLeaf = 2

// Range returns listed assets in the order of their ids. Each call is one short read
// transaction. It asks the kernel for the assets after the page.
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
		if key != nil {
			s.file.Ahead(tx, assetBucket, key, q.Limit/leastInLeaf+1) // for the next page
		}
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

// Writes returns how many transactions have written, and how long they took together.
func (s *Store) Writes() (count int64, took time.Duration) { return s.file.Updates() }
