package boltstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
)

// countedKey is the key of the newest position that the census covers. Earlier
// versions of the program write assets without updating the census.
var countedKey = []byte("counted")

// tally holds, for each state, how many assets it gains or loses.
type tally registry.Census

// save adds the tally to the census, which then covers positions up to last.
func (c tally) save(census *bbolt.Bucket, last int64) error {
	for state, more := range c {
		if state == "" || more == 0 {
			continue
		}
		if value := census.Get([]byte(state)); value != nil {
			more += positionOf(value)
		}
		if err := census.Put([]byte(state), positionKey(more)); err != nil {
			return err
		}
	}
	return census.Put(countedKey, positionKey(last))
}

// stateOf returns the state under which the census counts a stored asset; ""
// if the asset is not counted.
func stateOf(id string, h header, value []byte) asset.Status {
	if h.state != "" {
		return h.state
	}
	r, err := decode(id, value, registry.AnySize)
	if err != nil {
		return ""
	}
	return registry.StateOf(r.Body)
}

// recount counts all assets anew if the census does not cover the newest
// position. Otherwise it writes nothing, so the store opens even on a full disk.
func (s *Store) recount() error {
	complete := false
	err := s.file.View(func(tx *bbolt.Tx) error {
		last := tx.Bucket(stateBucket).Get(lastKey)
		complete = last == nil || bytes.Equal(last, tx.Bucket(censusBucket).Get(countedKey))
		return nil
	})
	if err != nil || complete {
		return err
	}
	return s.file.Update(recount)
}

func recount(tx *bbolt.Tx) error {
	if err := tx.DeleteBucket(censusBucket); err != nil {
		return err
	}
	census, err := tx.CreateBucket(censusBucket)
	if err != nil {
		return err
	}
	counted := tally{}
	err = tx.Bucket(assetBucket).ForEach(func(key, value []byte) error {
		h, err := decodeHeader(value)
		counted[stateOf(hex.EncodeToString(key), h, value)]++
		return err
	})
	if err != nil {
		return err
	}
	return counted.save(census, positionOf(tx.Bucket(stateBucket).Get(lastKey)))
}

// census returns the number of assets in each state; nil if the file is closed.
func (s *Store) census(context.Context) registry.Census {
	counted := registry.Census{}
	err := s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(censusBucket).ForEach(func(key, value []byte) error {
			if !bytes.Equal(key, countedKey) {
				counted[asset.Status(key)] = positionOf(value)
			}
			return nil
		})
	})
	if err != nil {
		return nil
	}
	return counted
}

// measure reports the census and the size of the file to meter until silence is
// called. A nil meter gets nothing.
func (s *Store) measure(meter metric.Meter) (silence func() error, err error) {
	if meter == nil {
		meter = noop.NewMeterProvider().Meter("")
	}
	assets, err := registry.MeasureCensus(meter, s.census)
	if err != nil {
		return nil, err
	}
	file, err := s.file.Measure(meter, "assets")
	if err != nil {
		return nil, errors.Join(err, assets())
	}
	return func() error { return errors.Join(assets(), file()) }, nil
}
