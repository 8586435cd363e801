package boltstore

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// Names of the formats before the record.
var (
	// logBucket maps an asset's id and a revision to the position and the change. It
	// held the newest 100 changes of each asset.
	logBucket = []byte("log")

	recordKey    = []byte("record")    // in stateBucket: the file has a record of all its assets
	upgradingKey = []byte("upgrading") // in stateBucket: id of the last asset that is in the record
)

const (
	upgradeBatch    = 1000 // assets in a transaction
	upgradeProgress = 10 * time.Second
)

// upgrade gives the file a record, if it has none. The record begins with the changes
// that the older format has kept. An upgrade that was interrupted continues.
func (s *Store) upgrade(o Options) error {
	if o.Import == nil {
		o.Import = func(_ registry.Record, change []byte) (described, whole []byte, err error) { return change, nil, nil }
	}
	done, total, finished := 0, 0, false
	err := s.file.View(func(tx *bbolt.Tx) error {
		finished = tx.Bucket(stateBucket).Get(recordKey) != nil
		if !finished {
			total = tx.Bucket(assetBucket).Stats().KeyN
		}
		return nil
	})
	started, logged := s.now(), s.now()
	for err == nil && !finished {
		var n int
		err = s.file.Update(func(tx *bbolt.Tx) (err error) {
			n, finished, err = upgradeSome(tx, o.Import)
			return err
		})
		done += n
		if now := s.now(); o.Log != nil && (now.Sub(logged) > upgradeProgress || finished && total > 0) {
			logged = now
			o.Log.Info("the data are upgraded to a new format", "assets", done, "of", total, "done", finished,
				"seconds", now.Sub(started).Seconds())
		}
	}
	return err
}

// upgradeSome adds the changes of some assets to the record. After the last asset it
// removes what the older format needed.
func upgradeSome(tx *bbolt.Tx, describe registry.Import) (n int, finished bool, err error) {
	state := tx.Bucket(stateBucket)
	cursor := tx.Bucket(assetBucket).Cursor()
	key, value := cursor.First()
	if last := state.Get(upgradingKey); last != nil {
		if key, value = cursor.Seek(last); bytes.Equal(key, last) {
			key, value = cursor.Next()
		}
	}
	var last []byte
	for ; key != nil && n < upgradeBatch; key, value = cursor.Next() {
		if err := importAsset(tx, key, value, describe); err != nil {
			return 0, false, fmt.Errorf("asset %x: %w", key, err)
		}
		last = key
		n++
	}
	if key != nil {
		return n, false, state.Put(upgradingKey, last)
	}
	if tx.Bucket(logBucket) != nil {
		if err := tx.DeleteBucket(logBucket); err != nil {
			return 0, false, err
		}
	}
	if err := state.Delete(upgradingKey); err != nil {
		return 0, false, err
	}
	return n, true, state.Put(recordKey, []byte{1})
}

// importAsset adds the kept changes of an asset to the record. The newest one
// describes the whole asset. The older format does not tell whether the asset was
// listed after the others.
func importAsset(tx *bbolt.Tx, key, value []byte, describe registry.Import) error {
	asset, err := decode(hex.EncodeToString(key), value, registry.AnySize)
	if err != nil {
		return err
	}
	t := &transaction{changes: tx.Bucket(changeBucket), history: tx.Bucket(historyBucket)}
	before, newest := int64(0), asset
	for _, kept := range oldLog(tx, key) {
		if kept.Position == asset.Position {
			newest.Change = kept.Change
			continue
		}
		r := registry.Record{Position: kept.Position, Revision: kept.Revision, Change: kept.Change}
		if err := t.note(key, r, before); err != nil {
			return err
		}
		before = kept.Position
	}
	if newest.Change, newest.Whole, err = describe(asset, newest.Change); err != nil {
		return err
	}
	return t.note(key, newest, before)
}

// oldLog returns the changes of an asset in logBucket, the oldest first.
func oldLog(tx *bbolt.Tx, id []byte) []registry.Revision {
	log := tx.Bucket(logBucket)
	if log == nil {
		return nil
	}
	var kept []registry.Revision
	cursor := log.Cursor()
	for at, value := cursor.Seek(id); bytes.HasPrefix(at, id); at, value = cursor.Next() {
		kept = append(kept, registry.Revision{
			Revision: positionOf(at[idSize:]),
			Position: positionOf(value),
			Change:   bytes.Clone(value[positionSize:]),
		})
	}
	return kept
}
