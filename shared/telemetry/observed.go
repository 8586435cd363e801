package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Observed makes metrics whose values are read at each collection. Read returns the errors of the methods before it.
type Observed struct {
	meter   metric.Meter
	metrics []metric.Observable
	err     error
}

// Observe returns an Observed without metrics.
func Observe(meter metric.Meter) *Observed { return &Observed{meter: meter} }

// Gauge makes a gauge of whole numbers. The unit may be "".
func (o *Observed) Gauge(name, unit, text string) metric.Int64Observable {
	made, err := o.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))
	o.add(made, err)
	return made
}

// Seconds makes a gauge of seconds.
func (o *Observed) Seconds(name, text string) metric.Float64Observable {
	made, err := o.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(text))
	o.add(made, err)
	return made
}

// Counter makes a counter.
func (o *Observed) Counter(name, unit, text string) metric.Int64Observable {
	made, err := o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
	o.add(made, err)
	return made
}

func (o *Observed) add(made metric.Observable, err error) {
	o.metrics, o.err = append(o.metrics, made), errors.Join(o.err, err)
}

// Read registers a function that tells the values of the metrics, until the function `stop` is called. If Read returns
// an error, stop does nothing.
func (o *Observed) Read(tell func(context.Context, metric.Observer)) (stop func() error, err error) {
	if err = o.err; err == nil {
		var registration metric.Registration
		registration, err = o.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
			tell(ctx, to)
			return nil
		}, o.metrics...)
		if err == nil {
			return registration.Unregister, nil
		}
	}
	return func() error { return nil }, fmt.Errorf("make metrics: %w", err)
}

// Flag returns the value of a gauge for a condition: 1 if it is true, otherwise 0.
func Flag(condition bool) int64 {
	if condition {
		return 1
	}
	return 0
}

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
