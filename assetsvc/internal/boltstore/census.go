package boltstore

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
)

// tally has, for each state, the number of assets that enter the state minus the number of assets that leave it.
type tally registry.Census

// save adds the tally to the census.
func (c tally) save(census *bbolt.Bucket) error {
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
	return nil
}

// census returns the number of assets in each state, or nil if the file cannot be read.
func (s *Store) census(context.Context) registry.Census {
	counted := registry.Census{}
	err := s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(censusBucket).ForEach(func(key, value []byte) error {
			counted[asset.Status(key)] = positionOf(value)
			return nil
		})
	})
	if err != nil {
		return nil
	}
	return counted
}

// measure reports the census and the size of the file to meter until the caller calls silence. If meter is nil,
// it reports nothing.
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
