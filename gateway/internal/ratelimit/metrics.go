package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/telemetry"
)

// refusedCounter makes the metric that counts refusals by policy.
func refusedCounter(meter metric.Meter) (metric.Int64Counter, error) {
	c, err := meter.Int64Counter("registry.limits.refused", metric.WithUnit("{request}"),
		metric.WithDescription("Requests over a rate limit, by policy."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	return c, nil
}

func (l *Limiter) countRefusal(ctx context.Context, policy string) {
	l.refused.Add(ctx, 1, ofPolicy(policy))
}

func ofPolicy(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("policy", name))
}

// measure adds the metrics of the store to a meter, until the returned function is called.
func (s *Borrower) measure(meter metric.Meter) (unregister func() error, err error) {
	down, err1 := meter.Int64ObservableGauge("registry.limits.store.away",
		metric.WithDescription("1 while the limits' Redis does not answer."))
	outages, err2 := meter.Int64ObservableCounter("registry.limits.store.losses", metric.WithUnit("{loss}"),
		metric.WithDescription("Times that the limits' Redis went down."))
	unaided, err3 := meter.Int64ObservableCounter("registry.limits.store.alone", metric.WithUnit("{request}"),
		metric.WithDescription("Requests decided without the limits' Redis because it was down."))
	trips, err4 := meter.Int64ObservableCounter("registry.limits.store.trips", metric.WithUnit("{call}"),
		metric.WithDescription("Round trips to the limits' Redis."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(outages, s.outages.Load())
		o.ObserveInt64(unaided, s.unaided.Load())
		o.ObserveInt64(trips, s.trips.Load())
		o.ObserveInt64(down, telemetry.Flag(s.down.Load()))
		return nil
	}, down, outages, unaided, trips)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	pools, err := telemetry.MeasurePools(meter, semconv.DBSystemNameRedis, s.redis.pools)
	if err != nil {
		return nil, errors.Join(err, registration.Unregister())
	}
	return func() error { return errors.Join(registration.Unregister(), pools()) }, nil
}
