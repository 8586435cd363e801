package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// StoreUse says how much space a store uses, in bytes. A field that is 0 is unknown and gets no metric.
// DiskFree is known whenever DiskSize is.
type StoreUse struct {
	Size                  int64 // size of the data
	DiskFree, DiskSize    int64 // free space and size of the disk with the data
	MemoryUsed, MemoryMax int64 // memory that the data use, and the maximum that they may use
}

// MeasureStore registers metrics of a store until the function `stop` is called. The argument `name`
// says what the store holds. The function `use` is called at each collection.
func MeasureStore(
	meter metric.Meter, name string, use func(context.Context) StoreUse,
) (stop func() error, err error) {
	gauge := func(metricName, description string) (g metric.Int64ObservableGauge) {
		g, failed := meter.Int64ObservableGauge("registry.store."+metricName,
			metric.WithUnit("By"), metric.WithDescription(description))
		err = errors.Join(err, failed)
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
	attributes := metric.WithAttributes(attribute.String("store", name))
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		u := use(ctx)
		if u.Size > 0 {
			o.ObserveInt64(size, u.Size, attributes)
		}
		if u.DiskSize > 0 {
			o.ObserveInt64(diskFree, u.DiskFree, attributes)
			o.ObserveInt64(diskSize, u.DiskSize, attributes)
		}
		if u.MemoryUsed > 0 {
			o.ObserveInt64(memoryUsed, u.MemoryUsed, attributes)
		}
		if u.MemoryMax > 0 {
			o.ObserveInt64(memoryMax, u.MemoryMax, attributes)
		}
		return nil
	}, size, diskFree, diskSize, memoryUsed, memoryMax)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}
