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
func (s *Store) Page(ctx context.Context, q registry.Query) (page registry.FeedPage, err error) {
	if err := ctx.Err(); err != nil {
		return page, err
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
		if last := tx.Bucket(stateBucket).Get(lastKey); last != nil {
			page.Upto = positionOf(last)
		}
		next := feedOf(tx, q)
		assets := tx.Bucket(assetBucket)
		size, most := 0, registry.AnySize // the first body always fits
		for at := next(); at.position != nil; at = next() {
			if len(page.Entries) == q.Limit {
				page.Upto = page.Entries[q.Limit-1].Position
				return nil
			}
			e := registry.Entry{ID: hex.EncodeToString(at.id), Position: positionOf(at.position), Test: at.test}
			if q.Bodies > 0 {
				r, err := decode(e.ID, assets.Get(at.id), most)
				if errors.Is(err, registry.ErrLarge) { // the page is full
					page.Upto = page.Entries[len(page.Entries)-1].Position
					return nil
				}
				if err != nil {
					return fmt.Errorf("asset %s of the feed: %w", e.ID, err)
				}
				e.Body = r.Body
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

// place is where an asset stands in a feed. Its position is nil at the end.
type place struct {
	position, id []byte
	test         bool // in the feed of test assets
}

// iterator returns the next place of a feed.
type iterator func() place

// feedOf iterates over the places that q asks for, in its order.
func feedOf(tx *bbolt.Tx, q registry.Query) iterator {
	switch q.Mode {
	case registry.Test:
		return seek(tx, true, q)
	case registry.All:
		return merge(seek(tx, false, q), seek(tx, true, q), q.Descending)
	default:
		return seek(tx, false, q)
	}
}

// seek iterates over one feed, starting at q.Offset.
func seek(tx *bbolt.Tx, test bool, q registry.Query) iterator {
	bucket := realBucket
	if test {
		bucket = testBucket
	}
	cursor := tx.Bucket(bucket).Cursor()
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
	return func() place {
		at := place{position, id, test}
		if position != nil {
			position, id = next()
		}
		return at
	}
}

// merge iterates over two feeds as one, in the order of their positions.
func merge(a, b iterator, descending bool) iterator {
	fromA, fromB := a(), b()
	return func() (at place) {
		isA := fromB.position == nil ||
			fromA.position != nil && bytes.Compare(fromA.position, fromB.position) < 0 != descending
		if isA {
			at, fromA = fromA, a()
		} else {
			at, fromB = fromB, b()
		}
		return at
	}
}
