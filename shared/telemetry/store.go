package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// StoreUse is how much of its place a store takes, in bytes. A size or a maximum
// of 0 is not known, and not told.
type StoreUse struct {
	Size                  int64 // of its data
	DiskFree, DiskSize    int64 // of the disk that its data lies on
	MemoryUsed, MemoryMax int64 // of the data, and the most that it may have
}

// MeasureStore tells a meter how much of its place a store takes, when it asks,
// until silence. The name says what the store keeps.
func MeasureStore(meter metric.Meter, name string, use func(context.Context) StoreUse) (silence func() error, err error) {
	gauge := func(metricName, description string) (g metric.Int64ObservableGauge) {
		g, wrong := meter.Int64ObservableGauge("registry.store."+metricName, metric.WithUnit("By"), metric.WithDescription(description))
		err = errors.Join(err, wrong)
		return g
	}
	size := gauge("size", "Bytes of a store's data.")
	diskFree := gauge("disk.free", "Bytes that are free on the disk of a store.")
	diskSize := gauge("disk.size", "Bytes of the disk of a store.")
	memoryUsed := gauge("memory.used", "Bytes of memory that a store's data takes.")
	memoryMax := gauge("memory.max", "Bytes of memory that a store's data may take.")
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	of := metric.WithAttributes(attribute.String("store", name))
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		u := use(ctx)
		if u.Size > 0 {
			o.ObserveInt64(size, u.Size, of)
		}
		if u.DiskSize > 0 {
			o.ObserveInt64(diskFree, u.DiskFree, of)
			o.ObserveInt64(diskSize, u.DiskSize, of)
		}
		if u.MemoryUsed > 0 {
			o.ObserveInt64(memoryUsed, u.MemoryUsed, of)
		}
		if u.MemoryMax > 0 {
			o.ObserveInt64(memoryMax, u.MemoryMax, of)
		}
		return nil
	}, size, diskFree, diskSize, memoryUsed, memoryMax)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}
