package lease

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Measure registers the metrics of a writer until unregister.
func (g *Grantor) Measure(meter metric.Meter) (unregister func() error, err error) {
	holders, err1 := meter.Int64ObservableGauge("registry.lease.holders", metric.WithUnit("{connection}"),
		metric.WithDescription("Gateways that may hold a lease of this writer."))
	granted, err2 := meter.Int64ObservableCounter("registry.lease.granted", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that this writer has granted."))
	batches, err3 := meter.Int64ObservableCounter("registry.lease.batches", metric.WithUnit("{batch}"),
		metric.WithDescription("Batches by result: confirmed (by all gateways with a lease) or waited (a lease had to end)."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	confirmed := metric.WithAttributes(attribute.String("result", "confirmed"))
	waited := metric.WithAttributes(attribute.String("result", "waited"))
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		n := int64(0)
		for h := range g.holders {
			if h.believed() {
				n++
			}
		}
		o.ObserveInt64(holders, n)
		o.ObserveInt64(granted, g.granted)
		o.ObserveInt64(batches, g.confirmed, confirmed)
		o.ObserveInt64(batches, g.waited, waited)
		return nil
	}, holders, granted, batches)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}

// Measure registers the metrics of a gateway until unregister.
func (h *Holder) Measure(meter metric.Meter) (unregister func() error, err error) {
	held, err1 := meter.Int64ObservableGauge("registry.lease.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that this gateway holds."))
	lost, err2 := meter.Int64ObservableCounter("registry.lease.lost", metric.WithUnit("{time}"),
		metric.WithDescription("Times that the gateway dropped all answers, because a lease ended or was missing."))
	without, err3 := meter.Float64ObservableCounter("registry.lease.without", metric.WithUnit("s"),
		metric.WithDescription("Time in which the gateway answered nothing from memory, because a lease was missing."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.sweep()
		h.account()
		o.ObserveInt64(held, int64(len(h.leases)))
		o.ObserveInt64(lost, h.lost)
		o.ObserveFloat64(without, h.absent.Seconds())
		return nil
	}, held, lost, without)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return registration.Unregister, nil
}
