package boltstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
)

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
