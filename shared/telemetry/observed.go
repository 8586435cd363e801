package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
)

// Must returns a metric. It panics if the metric could not be made, because only a wrong name or unit gives an error.
func Must[T any](made T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("make a metric: %v", err))
	}
	return made
}

// Counter returns a counter of events. The unit may be "".
func Counter(meter metric.Meter, name, unit, text string) metric.Int64Counter {
	return Must(meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text)))
}

// Durations returns a histogram of seconds, which buckets with these bounds count.
func Durations(meter metric.Meter, name, text string, buckets ...float64) metric.Float64Histogram {
	return Must(meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text),
		metric.WithExplicitBucketBoundaries(buckets...)))
}

// Observed makes metrics whose values are read at each collection.
type Observed struct {
	meter   metric.Meter
	metrics []metric.Observable
}

// Observe returns an Observed without metrics.
func Observe(meter metric.Meter) *Observed { return &Observed{meter: meter} }

// Gauge makes a gauge of whole numbers. The unit may be "".
func (o *Observed) Gauge(name, unit, text string) metric.Int64Observable {
	return observed(o, Must(o.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))))
}

// Seconds makes a gauge of seconds.
func (o *Observed) Seconds(name, text string) metric.Float64Observable {
	return observed(o, Must(o.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(text))))
}

// Counter makes a counter.
func (o *Observed) Counter(name, unit, text string) metric.Int64Observable {
	return observed(o, Must(o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(text))))
}

func observed[T metric.Observable](o *Observed, made T) T {
	o.metrics = append(o.metrics, made)
	return made
}

// Read registers a function that tells the values of the metrics, until the function `stop` is called.
func (o *Observed) Read(tell func(context.Context, metric.Observer)) (stop func()) {
	registration := Must(o.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		tell(ctx, to)
		return nil
	}, o.metrics...))
	return func() { _ = registration.Unregister() } // it fails only for callbacks that are not registered
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
func MeasureStore(meter metric.Meter, name string, use func(context.Context) StoreUse) (stop func()) {
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
func MeasurePools(meter metric.Meter, system attribute.KeyValue, pools func() []Pool) (stop func()) {
	observed := Observe(meter)
	count := observed.level("db.client.connection.count", "{connection}", "Connections to a database, by state.")
	most := observed.level("db.client.connection.max", "{connection}", "Maximum of open connections to a database.")
	waiting := observed.level("db.client.connection.pending_requests", "{request}",
		"Operations that wait for a connection.")
	timeouts := observed.Counter("db.client.connection.timeouts", "{timeout}",
		"Operations that waited for a connection in vain.")
	return observed.Read(func(_ context.Context, o metric.Observer) {
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
	})
}

// level makes a counter that goes up and down.
func (o *Observed) level(name, unit, text string) metric.Int64Observable {
	made := o.meter.Int64ObservableUpDownCounter
	return observed(o, Must(made(name, metric.WithUnit(unit), metric.WithDescription(text))))
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
func NewOperations(meter metric.Meter, system attribute.KeyValue) *Operations {
	return &Operations{Durations(meter, "db.client.operation.duration", "Duration of operations of a database.",
		operationBuckets...), system}
}

// Took records the duration of an operation. If err is not nil, the operation counts as failed.
func (o *Operations) Took(ctx context.Context, name string, took time.Duration, err error) {
	attributes := []attribute.KeyValue{o.system, semconv.DBOperationName(name)}
	if err != nil {
		attributes = append(attributes, semconv.ErrorTypeOther)
	}
	o.duration.Record(ctx, took.Seconds(), metric.WithAttributes(attributes...))
}
