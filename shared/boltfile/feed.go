package boltfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"
)

// Feed is a bucket of places: its keys are positions of 8 bytes, in big-endian order, and
// its values are ids.
type Feed struct {
	Bucket *bbolt.Bucket
	Test   bool // the places belong to assets in test mode
}

// Place is where an asset stands in a Feed. After the last place, Position is nil. The bytes are valid during
// the transaction only.
type Place struct {
	Position, ID []byte
	Test         bool // Feed.Test of the feed that the place is in
}

// Places returns an iterator over the places of all feeds together, in ascending or descending order of their
// positions. The first place is the one after the position `from` in this order; 0 stands for the start of the order.
func Places(from int64, descending bool, feeds ...Feed) (next func() Place) {
	for _, f := range feeds {
		one := f.places(from, descending)
		if next == nil {
			next = one
		} else {
			next = merge(next, one, descending)
		}
	}
	return next
}

// places iterates over the places of one feed, as Places does.
func (f Feed) places(from int64, descending bool) func() Place {
	cursor := f.Bucket.Cursor()
	offset := binary.BigEndian.AppendUint64(nil, uint64(from))
	position, id := cursor.Seek(offset)
	next := cursor.Next
	// Seek has found the offset or the next later position. If the offset is after all positions, it found nothing.
	if descending {
		next = cursor.Prev
		if from == 0 || position == nil {
			position, id = cursor.Last()
		}
		if from > 0 && position != nil && bytes.Compare(position, offset) >= 0 {
			position, id = cursor.Prev()
		}
	} else if bytes.Equal(position, offset) {
		position, id = cursor.Next()
	}
	return func() Place {
		at := Place{position, id, f.Test}
		if position != nil {
			position, id = next()
		}
		return at
	}
}

// merge iterates over the places of two iterators together, in the order of their positions.
func merge(a, b func() Place, descending bool) func() Place {
	fromA, fromB := a(), b()
	return func() (at Place) {
		isA := fromB.Position == nil ||
			fromA.Position != nil && bytes.Compare(fromA.Position, fromB.Position) < 0 != descending
		if isA {
			at, fromA = fromA, a()
		} else {
			at, fromB = fromB, b()
		}
		return at
	}
}

// Read returns what a function reads in ViewIn.
func Read[T any](ctx context.Context, f *File, read func(*bbolt.Tx) (T, error)) (found T, err error) {
	err = f.ViewIn(ctx, func(tx *bbolt.Tx) (err error) {
		found, err = read(tx)
		return err
	})
	return found, err
}

// Page reads up to limit elements of a bucket, in the order of their keys. Its keys begin with a prefix. The first
// element follows the key that has the argument `after` behind the prefix. The function `decode` gets the key without
// the prefix.
func Page[T any](
	b *bbolt.Bucket, prefix []byte, after string, limit int, decode func(key, value []byte) (T, error),
) (page []T, err error) {
	cursor, start := b.Cursor(), slices.Concat(prefix, []byte(after))
	key, value := cursor.Seek(start)
	if bytes.Equal(key, start) {
		key, value = cursor.Next()
	}
	for ; key != nil && bytes.HasPrefix(key, prefix) && len(page) < limit; key, value = cursor.Next() {
		one, err := decode(key[len(prefix):], value)
		if err != nil {
			return page, err
		}
		page = append(page, one)
	}
	return page, nil
}
