package answers

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Measure adds the metrics of the memory to a meter, until the function `unregister` is called.
func (m *Cache) Measure(meter metric.Meter) (unregister func() error, err error) {
	lookups, err1 := meter.Int64ObservableCounter("registry.answers.lookups", metric.WithUnit("{request}"),
		metric.WithDescription("Readings of assets by result: hit (answered from memory) or miss."))
	dropped, err2 := meter.Int64ObservableCounter("registry.answers.dropped", metric.WithUnit("{asset}"),
		metric.WithDescription("Assets whose answers were dropped because somebody changed them."))
	refused, err3 := meter.Int64ObservableCounter("registry.answers.refused", metric.WithUnit("{request}"),
		metric.WithDescription("Answers that were not kept because the asset changed while it was read."))
	held, err4 := meter.Int64ObservableGauge("registry.answers.held", metric.WithUnit("By"),
		metric.WithDescription("Bytes of the answers in memory."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	hit := metric.WithAttributes(attribute.String("result", "hit"))
	miss := metric.WithAttributes(attribute.String("result", "miss"))
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(lookups, m.found.Load(), hit)
		o.ObserveInt64(lookups, m.missed.Load(), miss)
		o.ObserveInt64(dropped, m.dropped.Load())
		o.ObserveInt64(refused, m.refused.Load())
		o.ObserveInt64(held, int64(m.kept.WeightedSize()))
		return nil
	}, lookups, dropped, refused, held)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}
