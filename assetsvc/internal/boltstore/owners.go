package boltstore

import (
	"bytes"
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

// The index of brokers has a key for each asset: broker, 0 and position. The value is the id and a
// byte, which has the facts by which a page selects: testFact, and above it the index into states.
//
// Files of former programs lack the index, and those programs do not keep it. So a file holds
// the newest position up to which the index is complete. If that is not the newest of all, Open
// makes the index again.

// indexedKey is the key of that position, in stateBucket.
var indexedKey = []byte("brokers-upto")

const testFact, factStates = 1, 1 // bit, shift

// errNotIndexed is the error of a page of a broker in a store that was opened without
// Options.Owner, if it lacked the index.
var errNotIndexed = errors.New("the file has no index of brokers")

func placeOf(key []byte, r registry.Record) []byte {
	facts := byte(max(0, slices.Index(states[:], r.State))) << factStates
	if r.Test {
		facts |= testFact
	}
	return append(slices.Clone(key), facts)
}

// enlistedAt returns the key of a place in the list of a broker.
func enlistedAt(broker string, position int64) []byte {
	return append([]byte(broker+"\x00"), positionKey(position)...)
}

// enlist puts an asset into the list of its owner, and takes it out of the list of its former
// owner at the position that it leaves; 0: it is new.
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

// ownPlaces iterates over the places of a broker that q asks for, in its order. Their ids are
// without the facts.
func ownPlaces(tx *bbolt.Tx, q registry.Query) (next func() boltfile.Place) {
	cursor, prefix := tx.Bucket(brokerBucket).Cursor(), []byte(q.Owner+"\x00")
	key, value := cursor.Seek(enlistedAt(q.Owner, q.Offset+1))
	step := cursor.Next
	if q.Descending {
		step = cursor.Prev
		end := q.Offset
		if end == 0 {
			end = math.MaxInt64
		}
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

// indexPiece is how many assets one transaction of indexOwners reads.
const indexPiece = 2000

// indexOwners makes the index of brokers if the file lacks it, or if a program has written that
// does not keep it. It reports whether the file has the index. If the process dies, the next one
// begins anew.
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

// indexFrom adds the assets after a key to the index, up to indexPiece. It returns the key of the
// last one and their number.
func indexFrom(
	tx *bbolt.Tx, after []byte, ownerOf func(registry.Record) (string, error),
) (last []byte, count int, err error) {
	cursor := tx.Bucket(assetBucket).Cursor()
	key, value := cursor.Seek(after) // nil seeks the first
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
