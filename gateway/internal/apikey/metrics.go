package apikey

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// counts are what operators watch the cache by.
type counts struct {
	hits, negatives, misses, forgets atomic.Int64
}

// found counts a key that was remembered.
func (c *counts) found(e entry) {
	if e.err != nil {
		c.negatives.Add(1)
		return
	}
	c.hits.Add(1)
}

// Measure tells a meter of the cache, when it asks, until silence.
func (c *Cache) Measure(meter metric.Meter) (silence func() error, err error) {
	lookups, err1 := meter.Int64ObservableCounter("registry.keys.lookups", metric.WithUnit("{key}"),
		metric.WithDescription("Keys that were looked up, by what was remembered: that it is good (hit), that it is not (negative), or nothing (miss)."))
	forgets, err2 := meter.Int64ObservableCounter("registry.keys.forgets", metric.WithUnit("{change}"),
		metric.WithDescription("Times that a change of keys was told, and what it touched forgotten."))
	remembered, err3 := meter.Int64ObservableGauge("registry.keys.remembered", metric.WithUnit("{key}"),
		metric.WithDescription("Keys that are remembered."))
	unwatched, err4 := meter.Int64ObservableGauge("registry.keys.unwatched",
		metric.WithDescription("1 while changes of keys are not told, and keys are asked about all the time."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	hit, negative, miss := ofResult("hit"), ofResult("negative"), ofResult("miss")
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(lookups, c.counts.hits.Load(), hit)
		o.ObserveInt64(lookups, c.counts.negatives.Load(), negative)
		o.ObserveInt64(lookups, c.counts.misses.Load(), miss)
		o.ObserveInt64(forgets, c.counts.forgets.Load())
		kept, alone := c.state()
		o.ObserveInt64(remembered, int64(kept))
		o.ObserveInt64(unwatched, telemetry.Flag(alone))
		return nil
	}, lookups, forgets, remembered, unwatched)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}

func ofResult(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("result", name))
}

// state tells how many keys are remembered, and whether nobody says that they
// have not changed.
func (c *Cache) state() (kept int, unwatched bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries), !c.now().Before(c.confirmed.Add(unwatchedTTL))
}
