package boltstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// Page returns up to q.Limit listed assets in the order that q asks for.
func (s *Store) Page(ctx context.Context, q registry.Query) (entries []registry.Entry, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
		next := feedOf(tx, q)
		assets := tx.Bucket(assetBucket)
		size, most := 0, registry.AnySize // the first body always fits
		for position, id := next(); position != nil && len(entries) < q.Limit; position, id = next() {
			e := registry.Entry{ID: hex.EncodeToString(id), Position: positionOf(position)}
			if q.Bodies > 0 {
				r, err := decode(e.ID, assets.Get(id), most)
				if errors.Is(err, registry.ErrLarge) {
					return nil // the page is full
				}
				if err != nil {
					return fmt.Errorf("asset %s of the feed: %w", e.ID, err)
				}
				e.Body = r.Body
				size += len(r.Body)
				most = q.Bodies - size
			}
			entries = append(entries, e)
		}
		return nil
	})
	return entries, err
}

// iterator returns the next position and id of a feed. At the end both are nil.
type iterator func() (position, id []byte)

// feedOf iterates over the entries that q asks for, in its order.
func feedOf(tx *bbolt.Tx, q registry.Query) iterator {
	switch q.Mode {
	case registry.Test:
		return seek(tx.Bucket(testBucket), q)
	case registry.All:
		return merge(seek(tx.Bucket(realBucket), q), seek(tx.Bucket(testBucket), q), q.Descending)
	default:
		return seek(tx.Bucket(realBucket), q)
	}
}

// seek iterates over one feed, starting at q.Offset.
func seek(feed *bbolt.Bucket, q registry.Query) iterator {
	cursor := feed.Cursor()
	var position, id []byte
	offset := positionKey(q.Offset)
	switch {
	case !q.Descending:
		if position, id = cursor.Seek(offset); bytes.Equal(position, offset) {
			position, id = cursor.Next()
		}
	case q.Offset == 0:
		position, id = cursor.Last()
	default: // Seek finds the offset, a later position, or nothing at the end
		if position, id = cursor.Seek(offset); position == nil {
			position, id = cursor.Last()
		}
		if bytes.Compare(position, offset) >= 0 {
			position, id = cursor.Prev()
		}
	}
	next := cursor.Next
	if q.Descending {
		next = cursor.Prev
	}
	return func() (p, i []byte) {
		p, i = position, id
		if p != nil {
			position, id = next()
		}
		return p, i
	}
}

// merge iterates over two feeds as one, in the order of their positions.
func merge(a, b iterator, descending bool) iterator {
	positionA, idA := a()
	positionB, idB := b()
	return func() (position, id []byte) {
		isA := positionB == nil || positionA != nil && bytes.Compare(positionA, positionB) < 0 != descending
		if isA {
			position, id = positionA, idA
			positionA, idA = a()
		} else {
			position, id = positionB, idB
			positionB, idB = b()
		}
		return position, id
	}
}
