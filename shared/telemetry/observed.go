package telemetry

import (
	"context"
	"errors"
	"fmt"

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
