package boltstore

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
)

// The index of brokers has one key for each asset: the broker, a zero byte, and the position. The value is the id
// and one more byte, with the facts by which a page selects assets. Its lowest bit is testFact, and the higher bits
// are an index into states.
//
// An earlier version of the program may have written the file. The earlier version does not know the index, so
// it neither creates nor updates the index. Therefore the file also has the newest position up to which the
// index is complete. If the store's newest position differs from that position, Open makes the index again.

// indexedKey is the key, in stateBucket, of the newest position up to which the index of brokers is complete.
var indexedKey = []byte("brokers-upto")

const testFact, factStates = 1, 1 // mask of the test bit; shift of the index into states

// errNotIndexed is returned for a page of a broker's list if the file has no index, and the store was opened
// without Options.Owner.
var errNotIndexed = errors.New("the file has no index of brokers")

func placeOf(key []byte, r registry.Record) []byte {
	facts := byte(max(0, slices.Index(states[:], r.State))) << factStates
	if r.Test {
		facts |= testFact
	}
	return append(slices.Clone(key), facts)
}

// enlistedAt returns the key of a position in the list of a broker.
func enlistedAt(broker string, position int64) []byte {
	return append([]byte(broker+"\x00"), positionKey(position)...)
}

// enlist adds an asset to the list of its owner. If the asset is not new, enlist also removes it from the list of
// its former owner, where its position is the argument `from`. For a new asset, `from` is 0.
func (t *transaction) enlist(key []byte, r registry.Record, from int64) error {
	if t.brokers == nil {
		return nil
	}
	if from > 0 && r.Former != "" {
		if err := t.brokers.Delete(enlistedAt(r.Former, from)); err != nil {
			return err
		}
	}
	if r.Owner == "" {
		return nil
	}
	return t.brokers.Put(enlistedAt(r.Owner, r.Position), placeOf(key, r))
}

// ownPlaces iterates over the places that the query q asks for in the list of a broker, in the order of q. A
// stored value is an id and one byte of facts. The field ID of a place has only the id.
func ownPlaces(tx *bbolt.Tx, q registry.Query) (next func() boltfile.Place) {
	cursor, prefix := tx.Bucket(brokerBucket).Cursor(), []byte(q.Owner+"\x00")
	key, value := cursor.Seek(enlistedAt(q.Owner, q.Offset+1))
	step := cursor.Next
	if q.Descending {
		step = cursor.Prev
		end := cmp.Or(q.Offset, math.MaxInt64)
		if key, _ = cursor.Seek(enlistedAt(q.Owner, end)); key == nil {
			key, value = cursor.Last()
		} else {
			key, value = cursor.Prev()
		}
	}
	return func() boltfile.Place {
		for ; bytes.HasPrefix(key, prefix); key, value = step() {
			facts := value[idSize]
			at := boltfile.Place{Position: key[len(prefix):], ID: value[:idSize], Test: facts&testFact != 0}
			inMode := q.Mode == registry.All || at.Test == (q.Mode == registry.Test)
			if inMode && (q.State == "" || states[facts>>factStates] == q.State) {
				key, value = step()
				return at
			}
		}
		return boltfile.Place{}
	}
}

// indexPiece is the maximum number of assets that one transaction of indexOwners reads.
const indexPiece = 2000

// indexOwners makes the index of brokers if the file has none, or if a program that does not know the index has
// written to the file. It reports whether the file has the index in the end. If it is interrupted, the next call
// starts from the beginning.
func (s *Store) indexOwners(o Options) (bool, error) {
	var last, upto []byte
	err := s.file.View(func(tx *bbolt.Tx) error {
		state := tx.Bucket(stateBucket)
		last, upto = bytes.Clone(state.Get(lastKey)), bytes.Clone(state.Get(indexedKey))
		return nil
	})
	if err != nil || bytes.Equal(last, upto) || o.Owner == nil {
		return bytes.Equal(last, upto), err
	}
	begun, indexed := time.Now(), 0
	err = s.file.Update(func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(brokerBucket); err != nil {
			return err
		}
		_, err := tx.CreateBucket(brokerBucket)
		return err
	})
	for after, more := []byte(nil), true; more && err == nil; {
		err = s.file.Update(func(tx *bbolt.Tx) (err error) {
			count := 0
			after, count, err = indexFrom(tx, after, o.Owner)
			indexed, more = indexed+count, count == indexPiece
			if err == nil && !more {
				err = tx.Bucket(stateBucket).Put(indexedKey, last)
			}
			return err
		})
	}
	if err != nil {
		return false, fmt.Errorf("make the index of brokers: %w", err)
	}
	if o.Log != nil {
		o.Log.Info("the file has an index of brokers now", slog.Int("assets", indexed), "took", time.Since(begun))
	}
	return true, nil
}

// indexFrom adds assets to the index: the first indexPiece assets whose keys are greater than the argument `after`.
// It returns the key of the last asset, and the number of assets that it has read.
func indexFrom(
	tx *bbolt.Tx, after []byte, ownerOf func(registry.Record) (string, error),
) (last []byte, count int, err error) {
	cursor := tx.Bucket(assetBucket).Cursor()
	key, value := cursor.Seek(after) // a nil key seeks the first asset
	if after != nil && bytes.Equal(key, after) {
		key, value = cursor.Next()
	}
	for ; key != nil && count < indexPiece; key, value = cursor.Next() {
		r, err := decode(hex.EncodeToString(key), value, registry.AnySize)
		if err != nil {
			return nil, 0, fmt.Errorf("asset %x: %w", key, err)
		}
		owner := ""
		if !r.Removed {
			if owner, err = ownerOf(r); err != nil {
				return nil, 0, fmt.Errorf("owner of asset %x: %w", key, err)
			}
		}
		if owner != "" {
			if err := tx.Bucket(brokerBucket).Put(enlistedAt(owner, r.Position), placeOf(key, r)); err != nil {
				return nil, 0, err
			}
		}
		last, count = bytes.Clone(key), count+1
	}
	return last, count, nil
}
