package answers

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// Measure adds the metrics of the memory to a meter, until the function `unregister` is called.
func (m *Cache) Measure(meter metric.Meter) (unregister func() error, err error) {
	observed := telemetry.Observe(meter)
	lookups := observed.Counter("registry.answers.lookups", "{request}",
		"Readings of assets by result: hit (answered from memory) or miss.")
	dropped := observed.Counter("registry.answers.dropped", "{asset}",
		"Assets whose answers were dropped because somebody changed them.")
	refused := observed.Counter("registry.answers.refused", "{request}",
		"Answers that were not kept because the asset changed while it was read.")
	held := observed.Gauge("registry.answers.held", "By", "Bytes of the answers in memory.")
	hit := metric.WithAttributes(attribute.String("result", "hit"))
	miss := metric.WithAttributes(attribute.String("result", "miss"))
	return observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(lookups, m.found.Load(), hit)
		o.ObserveInt64(lookups, m.missed.Load(), miss)
		o.ObserveInt64(dropped, m.dropped.Load())
		o.ObserveInt64(refused, m.refused.Load())
		o.ObserveInt64(held, int64(m.kept.WeightedSize()))
	})
}
