package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
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

// Pool has the state of the connections to one database server.
type Pool struct {
	Name       string
	Idle, Used int64 // idle connections, and connections in use
	Max        int64 // maximum number of connections; 0 if not known
	Waiting    int64 // operations that wait for a connection
	Timeouts   int64 // operations that waited but got no connection in time, since the start
}

// MeasurePools registers metrics of the connections to a database until the function `stop` is called (OpenTelemetry
// semantic conventions, database client metrics). The function `pools` is called at each collection.
func MeasurePools(
	meter metric.Meter, system attribute.KeyValue, pools func() []Pool,
) (stop func() error, err error) {
	count, err1 := meter.Int64ObservableUpDownCounter("db.client.connection.count", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections to a database, by state."))
	most, err2 := meter.Int64ObservableUpDownCounter("db.client.connection.max", metric.WithUnit("{connection}"),
		metric.WithDescription("Maximum of open connections to a database."))
	waiting, err3 := meter.Int64ObservableUpDownCounter("db.client.connection.pending_requests",
		metric.WithUnit("{request}"), metric.WithDescription("Operations that wait for a connection."))
	timeouts, err4 := meter.Int64ObservableCounter("db.client.connection.timeouts", metric.WithUnit("{timeout}"),
		metric.WithDescription("Operations that waited for a connection in vain."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, p := range pools() {
			name := semconv.DBClientConnectionPoolName(p.Name)
			of := metric.WithAttributes(system, name)
			o.ObserveInt64(count, p.Idle, metric.WithAttributes(system, name, semconv.DBClientConnectionStateIdle))
			o.ObserveInt64(count, p.Used, metric.WithAttributes(system, name, semconv.DBClientConnectionStateUsed))
			o.ObserveInt64(waiting, p.Waiting, of)
			o.ObserveInt64(timeouts, p.Timeouts, of)
			if p.Max > 0 {
				o.ObserveInt64(most, p.Max, of)
			}
		}
		return nil
	}, count, most, waiting, timeouts)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}

// operationBuckets are in seconds (OpenTelemetry semantic conventions, database
// client metrics).
var operationBuckets = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}

// Operations measures the operations of a database.
type Operations struct {
	duration metric.Float64Histogram
	system   attribute.KeyValue
}

// NewOperations registers the metric of a database's operations.
func NewOperations(meter metric.Meter, system attribute.KeyValue) (*Operations, error) {
	duration, err := meter.Float64Histogram("db.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of operations of a database."),
		metric.WithExplicitBucketBoundaries(operationBuckets...))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	return &Operations{duration, system}, nil
}

// Took records the duration of an operation. If err is not nil, the operation counts as failed.
func (o *Operations) Took(ctx context.Context, name string, took time.Duration, err error) {
	attributes := []attribute.KeyValue{o.system, semconv.DBOperationName(name)}
	if err != nil {
		attributes = append(attributes, semconv.ErrorTypeOther)
	}
	o.duration.Record(ctx, took.Seconds(), metric.WithAttributes(attributes...))
}
