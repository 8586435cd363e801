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
