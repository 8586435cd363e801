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

// leastInLeaf is the smallest number of assets in a leaf of bbolt.
const leastInLeaf = 2

// Range returns listed assets in the order of their ids. Each call is one short read transaction. At its end,
// Range asks the kernel to read the assets of the next page into memory.
func (s *Store) Range(ctx context.Context, q registry.RangeQuery) (page registry.RangePage, err error) {
	from, _ := registry.ParseID(q.From) // if From is malformed or "", from is nil, which seeks the first asset
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
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
			s.file.Ahead(tx, assetBucket, key, q.Limit/leastInLeaf+1) // so that the next page is in memory
		}
		return nil
	})
	return page, err
}

// listedEntry returns the entry of a stored asset. If the asset is not listed, the entry has no body. If the body
// has more bytes than the limit `most`, listedEntry returns registry.ErrLarge.
func listedEntry(key, value []byte, most int) (registry.Entry, error) {
	h, err := decodeHeader(value)
	if err != nil || !h.listed {
		return registry.Entry{}, err
	}
	r, err := decode(hex.EncodeToString(key), value, most)
	return registry.Entry{ID: r.ID, Position: r.Position, Body: r.Body}, err
}

// Writes returns how many transactions have written to the file, and how long all of them took together.
func (s *Store) Writes() (count int64, took time.Duration) { return s.file.Updates() }
