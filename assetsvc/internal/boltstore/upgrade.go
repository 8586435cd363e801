package boltstore

import (
	"bytes"
	"encoding/hex"
	"errors"
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

	recordKey = []byte("record") // in stateBucket: the file has a record of all its assets

	// upgradingKey, in stateBucket, has the id of the last asset that is in the record, and
	// the number of assets up to it.
	upgradingKey = []byte("upgrading")
)

const (
	upgradeBatch    = 1000     // most assets in a transaction
	upgradeBytes    = 16 << 20 // most bytes of changes in a transaction; one asset may have more
	upgradeProgress = 10 * time.Second
)

// errInterrupted is returned when Options.Interrupt ends an upgrade.
var errInterrupted = errors.New("interrupted; the next start continues")

// upgrade gives the file a record, if it has none. The record begins with the changes
// that the older format has kept. An upgrade that was interrupted continues.
func (s *Store) upgrade(o Options) error {
	if o.Import == nil {
		o.Import = registry.ImportKept
	}
	done, total, finished := 0, 0, false
	err := s.file.View(func(tx *bbolt.Tx) error {
		finished = tx.Bucket(stateBucket).Get(recordKey) != nil
		if !finished {
			total = tx.Bucket(assetBucket).Stats().KeyN
			_, done = upgraded(tx)
		}
		return nil
	})
	report := func(now time.Time, started time.Time) {
		if o.Log != nil {
			o.Log.Info("the data are upgraded to a new format", "assets", done, "of", total, "done", finished,
				"seconds", now.Sub(started).Seconds())
		}
	}
	started := time.Now()
	logged := started
	if err == nil && total > 0 {
		report(started, started)
	}
	for err == nil && !finished {
		select {
		case <-o.Interrupt:
			return errInterrupted
		default:
		}
		err = s.file.Update(func(tx *bbolt.Tx) (err error) {
			done, finished, err = upgradeSome(tx, o.Import)
			return err
		})
		if now := time.Now(); now.Sub(logged) > upgradeProgress || finished && total > 0 {
			logged = now
			report(now, started)
		}
	}
	return err
}

// upgraded returns the id of the last asset that is in the record, and the number of
// assets up to it; nil and 0 before the first.
func upgraded(tx *bbolt.Tx) (last []byte, done int) {
	value := tx.Bucket(stateBucket).Get(upgradingKey)
	if len(value) != idSize+positionSize {
		return nil, 0
	}
	return value[:idSize], int(positionOf(value[idSize:]))
}

// upgradeSome adds the changes of some assets to the record, and returns the number of
// all that are in it. After the last asset it removes what the older format needed.
func upgradeSome(tx *bbolt.Tx, describe registry.Import) (done int, finished bool, err error) {
	state := tx.Bucket(stateBucket)
	cursor := tx.Bucket(assetBucket).Cursor()
	key, value := cursor.First()
	last, done := upgraded(tx)
	if last != nil {
		if key, value = cursor.Seek(last); bytes.Equal(key, last) {
			key, value = cursor.Next()
		}
	}
	for n, size := 0, 0; key != nil && n < upgradeBatch && size < upgradeBytes; key, value = cursor.Next() {
		added, err := importAsset(tx, key, value, describe)
		if err != nil {
			return 0, false, fmt.Errorf("asset %x: %w", key, err)
		}
		last, size = key, size+added
		n, done = n+1, done+1
	}
	if key != nil {
		return done, false, state.Put(upgradingKey, append(bytes.Clone(last), positionKey(int64(done))...))
	}
	if tx.Bucket(logBucket) != nil {
		if err := tx.DeleteBucket(logBucket); err != nil {
			return 0, false, err
		}
	}
	if err := state.Delete(upgradingKey); err != nil {
		return 0, false, err
	}
	return done, true, state.Put(recordKey, []byte{1})
}

// importAsset adds the kept changes of an asset to the record, and returns their bytes.
// The newest one describes the whole asset. The older format does not tell whether the
// asset was listed after the others.
func importAsset(tx *bbolt.Tx, key, value []byte, describe registry.Import) (size int, err error) {
	asset, err := decode(hex.EncodeToString(key), value, registry.AnySize)
	if err != nil {
		return 0, err
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
			return 0, err
		}
		before, size = kept.Position, size+len(kept.Change)
	}
	if newest.Change, newest.Whole, err = describe(asset, newest.Change); err != nil {
		return 0, err
	}
	return size + len(newest.Change) + len(newest.Whole), t.note(key, newest, before)
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
