package memory

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// Limiter is a Budget, InFlight or a fair.Semaphore of bytes.
type Limiter interface {
	Used() int64    // bytes in use
	Size() int64    // bytes that may be in use
	Refused() int64 // requests that did not fit, since the start
}

// Measure registers metrics of limiters, by their names, until the function `stop` is called.
func Measure(meter metric.Meter, limiters map[string]Limiter) (stop func() error, err error) {
	observed := telemetry.Observe(meter)
	used := observed.Gauge("registry.memory.used", "By", "Memory that requests hold, by limiter.")
	size := observed.Gauge("registry.memory.size", "By", "Memory that requests may hold, by limiter.")
	refused := observed.Counter("registry.memory.refused", "{request}",
		"Requests that were refused for lack of memory, by limiter.")
	return observed.Read(func(_ context.Context, o metric.Observer) {
		for name, l := range limiters {
			attributes := metric.WithAttributes(attribute.String("part", name))
			o.ObserveInt64(used, l.Used(), attributes)
			o.ObserveInt64(size, l.Size(), attributes)
			o.ObserveInt64(refused, l.Refused(), attributes)
		}
	})
}
