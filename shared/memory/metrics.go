package memory

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Limiter is a Budget, InFlight or a fair.Semaphore of bytes.
type Limiter interface {
	Used() int64    // bytes in use
	Size() int64    // bytes that may be in use
	Refused() int64 // requests that did not fit, since the start
}

// Measure registers metrics of limiters, by their names, until the function `stop` is called.
func Measure(meter metric.Meter, limiters map[string]Limiter) (stop func() error, err error) {
	used, err := meter.Int64ObservableGauge("registry.memory.used", metric.WithUnit("By"),
		metric.WithDescription("Memory that requests hold, by limiter."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	size, err := meter.Int64ObservableGauge("registry.memory.size", metric.WithUnit("By"),
		metric.WithDescription("Memory that requests may hold, by limiter."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	refused, err := meter.Int64ObservableCounter("registry.memory.refused", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that were refused for lack of memory, by limiter."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, l := range limiters {
			attributes := metric.WithAttributes(attribute.String("part", name))
			o.ObserveInt64(used, l.Used(), attributes)
			o.ObserveInt64(size, l.Size(), attributes)
			o.ObserveInt64(refused, l.Refused(), attributes)
		}
		return nil
	}, used, size, refused)
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	return registration.Unregister, nil
}
