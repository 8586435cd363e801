package memory

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Limiter is a part of the process's memory that requests share: a Budget, Answers,
// or a Semaphore.
type Limiter interface {
	Used() int64    // bytes
	Size() int64    // bytes
	Refused() int64 // requests that did not fit, since the start
}

// Measure tells a meter how full parts are, by their names, until silence.
func Measure(meter metric.Meter, parts map[string]Limiter) (silence func() error, err error) {
	used, err := meter.Int64ObservableGauge("registry.memory.used", metric.WithUnit("By"),
		metric.WithDescription("Memory that requests hold, by the part that it is from."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	size, err := meter.Int64ObservableGauge("registry.memory.size", metric.WithUnit("By"),
		metric.WithDescription("Memory that requests may hold, by the part that it is from."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	refused, err := meter.Int64ObservableCounter("registry.memory.refused", metric.WithUnit("{request}"),
		metric.WithDescription("Requests for which there was no memory, by the part that was full."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, part := range parts {
			of := metric.WithAttributes(attribute.String("part", name))
			o.ObserveInt64(used, part.Used(), of)
			o.ObserveInt64(size, part.Size(), of)
			o.ObserveInt64(refused, part.Refused(), of)
		}
		return nil
	}, used, size, refused)
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	return registration.Unregister, nil
}
