package replica

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.etcd.io/bbolt"
)

// Get returns an asset of the copy. ok is false if the copy does not have the asset.
func (r *Replica) Get(id string) (e Entry, ok bool, err error) {
	key, err := keyOf(id)
	if err != nil {
		return Entry{}, false, fmt.Errorf("%q is not the id of an asset", id)
	}
	err = r.file.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(assetsBucket).Get(key)
		if value == nil {
			return nil
		}
		found, err := valueOf(key, value)
		e, ok = found, err == nil
		e.JSON = bytes.Clone(found.JSON)
		return err
	})
	return e, ok, err
}

// Walk calls the function `visit` with each asset, in the order of ids, until visit returns an error. The JSON
// of an entry is valid only during the call.
func (r *Replica) Walk(visit func(Entry) error) error {
	return r.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(assetsBucket).ForEach(func(key, value []byte) error {
			e, err := valueOf(key, value)
			if err != nil {
				return err
			}
			return visit(e)
		})
	})
}

// Changes calls the function `visit` with each asset that changed after a position, in the order of
// positions, until visit returns false. The text is valid only during the call.
func (r *Replica) Changes(after int64, visit func(position int64, id string, text []byte) bool) error {
	_, err := r.Feed(FeedQuery{After: after, Real: true, Test: true, Texts: true}, func(e Entry) bool {
		return visit(e.Position, e.ID, e.JSON)
	})
	return err
}

// Text returns the text of an asset, or nil if the copy does not have the asset.
func (r *Replica) Text(id string) ([]byte, error) {
	e, _, err := r.Get(id)
	return e.JSON, err
}

// Sample returns the ids of count assets that are chosen at random. If the copy has fewer assets, it returns
// the ids of all.
func (r *Replica) Sample(count int) ([]string, error) {
	var ids []string
	seen := 0
	err := r.file.View(func(tx *bbolt.Tx) error {
		take := func(_, id []byte) error {
			seen++
			if len(ids) < count {
				ids = append(ids, fmt.Sprintf("%x", id))
			} else if at := rand.IntN(seen); at < count {
				ids[at] = fmt.Sprintf("%x", id)
			}
			return nil
		}
		b := bucketsOf(tx)
		return errors.Join(b.real.ForEach(take), b.test.ForEach(take))
	})
	return ids, err
}

// Check reads the whole copy. It returns the number of assets. The error wraps ErrUnsound if the copy violates K1, or
// if the text of an entry has another id or position than the entry.
func (r *Replica) Check() (assets int, err error) {
	err = r.file.View(func(tx *bbolt.Tx) error {
		b, entries := bucketsOf(tx), 0
		if err := b.assets.ForEach(func(key, value []byte) error {
			assets++
			return b.check(key, value)
		}); err != nil {
			return err
		}
		count := func(_, _ []byte) error { entries++; return nil }
		if err := errors.Join(b.real.ForEach(count), b.test.ForEach(count)); err != nil {
			return err
		}
		if entries != assets {
			return fmt.Errorf("%w: %d assets have %d entries in the feed", ErrUnsound, assets, entries)
		}
		return nil
	})
	return assets, err
}

// check checks an entry of the bucket of assets. It returns an error if the text of the entry is the text of another
// asset, or if the feed does not have the asset at its position.
func (b buckets) check(key, value []byte) error {
	e, err := valueOf(key, value)
	if err != nil {
		return err
	}
	text, err := parseEntry(e.JSON)
	if err != nil || text.ID != e.ID || text.Position != e.Position || text.Test != e.Test {
		return fmt.Errorf("%w: asset %s has the text of another entry", ErrUnsound, e.ID)
	}
	feed := b.real
	if e.Test {
		feed = b.test
	}
	if !bytes.Equal(feed.Get(positionKey(e.Position)), key) {
		return fmt.Errorf("%w: the feed has no entry of asset %s", ErrUnsound, e.ID)
	}
	return nil
}
