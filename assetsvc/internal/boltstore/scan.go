package boltstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
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

// Page returns up to q.Limit assets of the feed, or of a broker, in the order that q asks for.
func (s *Store) Page(ctx context.Context, q registry.Query) (page registry.FeedPage, err error) {
	places := feedOf
	if q.Owner != "" {
		if !s.indexed {
			return page, errNotIndexed
		}
		places = ownPlaces
	}
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		if last := tx.Bucket(stateBucket).Get(lastKey); last != nil {
			page.Upto = positionOf(last)
		}
		next := places(tx, q)
		assets := tx.Bucket(assetBucket)
		size, most := 0, registry.AnySize // the first body always fits
		page.Entries = make([]registry.Entry, 0, min(q.Limit, usualPage))
		for at := next(); at.Position != nil; at = next() {
			if len(page.Entries) == q.Limit {
				page.Upto = page.Entries[q.Limit-1].Position
				return nil
			}
			e := registry.Entry{ID: idText(at.ID), Position: positionOf(at.Position), Test: at.Test}
			if q.Bodies > 0 {
				r, err := decode(e.ID, assets.Get(at.ID), most)
				if errors.Is(err, registry.ErrLarge) { // the page is full
					page.Upto = page.Entries[len(page.Entries)-1].Position
					return nil
				}
				if err != nil {
					return fmt.Errorf("asset %s of a page: %w", e.ID, err)
				}
				e.Body = r.Body
				if q.Owner != "" {
					e.Origin = r.Origin
				}
				size += len(r.Body)
				most = q.Bodies - size
			}
			page.Entries = append(page.Entries, e)
		}
		return nil
	})
	if err != nil {
		return registry.FeedPage{}, err
	}
	return page, nil
}

// usualPage is the number of entries for which Page allocates memory at first.
const usualPage = 100

// idText returns an id as 32 hex characters, with one allocation.
func idText(id []byte) string {
	var text [32]byte
	return string(hex.AppendEncode(text[:0], id))
}

// feedOf iterates over the places in the feed that q asks for, in the order of q.
func feedOf(tx *bbolt.Tx, q registry.Query) (next func() boltfile.Place) {
	real := boltfile.Feed{Bucket: tx.Bucket(realBucket)}
	test := boltfile.Feed{Bucket: tx.Bucket(testBucket), Test: true}
	switch q.Mode {
	case registry.Test:
		return boltfile.Places(q.Offset, q.Descending, test)
	case registry.All:
		return boltfile.Places(q.Offset, q.Descending, real, test)
	default:
		return boltfile.Places(q.Offset, q.Descending, real)
	}
}

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
