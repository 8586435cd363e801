package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/errs"
	"asset-registry/shared/telemetry"
)

// refusedCounter makes the metric that counts refusals by policy.
func refusedCounter(meter metric.Meter) (metric.Int64Counter, error) {
	c, err := meter.Int64Counter("registry.limits.refused", metric.WithUnit("{request}"),
		metric.WithDescription("Requests over a rate limit, by policy."))
	return c, errs.In(err, "make metric")
}

func (l *Limiter) countRefusal(ctx context.Context, policy string) {
	l.refused.Add(ctx, 1, ofPolicy(policy))
}

func ofPolicy(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("policy", name))
}

// measure adds the metrics of the store to a meter, until the returned function is called.
func (s *Borrower) measure(meter metric.Meter) (unregister func() error, err error) {
	observed := telemetry.Observe(meter)
	down := observed.Gauge("registry.limits.store.away", "", "1 while the limits' Redis does not answer.")
	outages := observed.Counter("registry.limits.store.losses", "{loss}", "Times that the limits' Redis went down.")
	unaided := observed.Counter("registry.limits.store.alone", "{request}",
		"Requests decided without the limits' Redis because it was down.")
	trips := observed.Counter("registry.limits.store.trips", "{call}", "Round trips to the limits' Redis.")
	own, err := observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(outages, s.outages.Load())
		o.ObserveInt64(unaided, s.unaided.Load())
		o.ObserveInt64(trips, s.trips.Load())
		o.ObserveInt64(down, telemetry.Flag(s.down.Load()))
	})
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	pools, err := telemetry.MeasurePools(meter, semconv.DBSystemNameRedis, s.redis.pools)
	if err != nil {
		return nil, errors.Join(err, own())
	}
	return func() error { return errors.Join(own(), pools()) }, nil
}
