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

// countedKey is, in the census, the newest position when it was written. An
// earlier version of this program writes assets and no census.
var countedKey = []byte("counted")

// changes are how many more assets each state has.
type changes registry.Census

// save adds the changes to the census, which then is as of position last.
func (c changes) save(census *bbolt.Bucket, last int64) error {
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

// stateOf returns the state that a stored asset was counted as.
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

// recount counts all assets, unless the census is as new as they are. Then it
// writes nothing: a full disk is no reason not to start.
func (s *Store) recount() error {
	isNew := false
	err := s.file.View(func(tx *bbolt.Tx) error {
		last := tx.Bucket(stateBucket).Get(lastKey)
		isNew = last == nil || bytes.Equal(last, tx.Bucket(censusBucket).Get(countedKey))
		return nil
	})
	if err != nil || isNew {
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
	counted := changes{}
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

// census returns how many assets are in each state; nil when the file is closed.
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

// measure tells a meter of the assets and the file until silence.
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
