package telemetry

import (
	"context"

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
	observed := Observe(meter)
	size := observed.Gauge("registry.store.size", "By", "Bytes of a store's data.")
	diskFree := observed.Gauge("registry.store.disk.free", "By", "Bytes that are free on the disk of a store.")
	diskSize := observed.Gauge("registry.store.disk.size", "By", "Bytes of the disk of a store.")
	memoryUsed := observed.Gauge("registry.store.memory.used", "By", "Bytes of memory that a store's data takes.")
	memoryMax := observed.Gauge("registry.store.memory.max", "By", "Bytes of memory that a store's data may take.")
	attributes := metric.WithAttributes(attribute.String("store", name))
	return observed.Read(func(ctx context.Context, o metric.Observer) {
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
	})
}
