package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// result is the result of the last check as metrics. Alerts watch it.
type result struct {
	problems metric.Int64Gauge
	checked  metric.Float64Gauge // seconds since the Unix epoch
}

// Measure adds the metrics of checks to a meter. Call it before the first check.
func (c *Checker) Measure(meter metric.Meter) error {
	problems, err1 := meter.Int64Gauge("registry.audit.problems", metric.WithUnit("{problem}"),
		metric.WithDescription("Problems that the last check of the audit log by this process found."))
	checked, err2 := meter.Float64Gauge("registry.audit.checked", metric.WithUnit("s"),
		metric.WithDescription("Time of the last check of the audit log by this process, since the Unix epoch."))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	c.result = &result{problems, checked}
	return nil
}

func (r *result) record(ctx context.Context, problems int, now time.Time) {
	if r == nil {
		return
	}
	r.problems.Record(ctx, int64(problems))
	r.checked.Record(ctx, float64(now.UnixMilli())/1000)
}
