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

// Page returns up to q.Limit listed assets in the order q asks for.
func (s *Store) Page(ctx context.Context, q registry.Query) (entries []registry.Entry, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
		var feed walk
		switch q.Mode {
		case registry.Test:
			feed = start(tx.Bucket(testBucket), q)
		case registry.All:
			feed = both(start(tx.Bucket(realBucket), q), start(tx.Bucket(testBucket), q), q.Descending)
		default:
			feed = start(tx.Bucket(realBucket), q)
		}
		assets := tx.Bucket(assetBucket)
		size, most := 0, registry.AnySize // a page has one body at least
		for position, id := feed(); position != nil && len(entries) < q.Limit; position, id = feed() {
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

// walk returns the next position and id of a feed; nil at its end.
type walk func() (position, id []byte)

// start walks one feed from where q starts.
func start(feed *bbolt.Bucket, q registry.Query) walk {
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
	default: // Seek goes to the offset or past it, or past the end
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

// both walks two feeds as one, in the order of their positions.
func both(a, b walk, descending bool) walk {
	positionA, idA := a()
	positionB, idB := b()
	return func() (position, id []byte) {
		first := positionB == nil || positionA != nil && bytes.Compare(positionA, positionB) < 0 != descending
		if first {
			position, id = positionA, idA
			positionA, idA = a()
		} else {
			position, id = positionB, idB
			positionB, idB = b()
		}
		return position, id
	}
}
