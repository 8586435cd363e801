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

// counts has the numbers that the cache shows in its metrics.
type counts struct {
	hits, negatives, misses, forgets atomic.Int64
}

// countHit counts that the cache knew a key, as valid or as invalid.
func (c *counts) countHit(e entry) {
	if e.err != nil {
		c.negatives.Add(1)
		return
	}
	c.hits.Add(1)
}

// Measure adds the metrics of the cache to a meter, until the function `unregister` is called.
func (c *Cache) Measure(meter metric.Meter) (unregister func() error, err error) {
	lookups, err1 := meter.Int64ObservableCounter("registry.keys.lookups", metric.WithUnit("{key}"),
		metric.WithDescription("Looked up API keys by result: hit (valid), negative (invalid) or miss (not remembered)."))
	forgets, err2 := meter.Int64ObservableCounter("registry.keys.forgets", metric.WithUnit("{change}"),
		metric.WithDescription("Changes of API keys that made the cache forget keys."))
	remembered, err3 := meter.Int64ObservableGauge("registry.keys.remembered", metric.WithUnit("{key}"),
		metric.WithDescription("API keys in the cache."))
	unwatched, err4 := meter.Int64ObservableGauge("registry.keys.unwatched",
		metric.WithDescription("1 while changes of API keys cannot be watched; keys are then verified every second."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	hit, negative, miss := ofResult("hit"), ofResult("negative"), ofResult("miss")
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(lookups, c.hits.Load(), hit)
		o.ObserveInt64(lookups, c.negatives.Load(), negative)
		o.ObserveInt64(lookups, c.misses.Load(), miss)
		o.ObserveInt64(forgets, c.forgets.Load())
		size, lost := c.state()
		o.ObserveInt64(remembered, int64(size))
		o.ObserveInt64(unwatched, telemetry.Flag(lost))
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

// state returns the number of entries, and whether the watch of changes is lost.
func (c *Cache) state() (size int, lost bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries), !c.now().Before(c.confirmed.Add(unwatchedTTL))
}
