package apikey

import (
	"context"
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
	observed := telemetry.Observe(meter)
	lookups := observed.Counter("registry.keys.lookups", "{key}",
		"Looked up API keys by result: hit (valid), negative (invalid) or miss (not remembered).")
	forgets := observed.Counter("registry.keys.forgets", "{change}",
		"Changes of API keys that made the cache forget keys.")
	remembered := observed.Gauge("registry.keys.remembered", "{key}", "API keys in the cache.")
	unwatched := observed.Gauge("registry.keys.unwatched", "",
		"1 while changes of API keys cannot be watched; keys are then verified every second.")
	hit, negative, miss := ofResult("hit"), ofResult("negative"), ofResult("miss")
	return observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(lookups, c.hits.Load(), hit)
		o.ObserveInt64(lookups, c.negatives.Load(), negative)
		o.ObserveInt64(lookups, c.misses.Load(), miss)
		o.ObserveInt64(forgets, c.forgets.Load())
		size, lost := c.state()
		o.ObserveInt64(remembered, int64(size))
		o.ObserveInt64(unwatched, telemetry.Flag(lost))
	})
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
