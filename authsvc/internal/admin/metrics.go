package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// found is what the last check of the audit log has found, for operators to be
// woken by.
type found struct {
	problems metric.Int64Gauge
	checked  metric.Float64Gauge // s since the epoch
}

// Measure tells a meter what checks of the audit log find. It comes before all
// checks.
func (s *Service) Measure(meter metric.Meter) error {
	problems, err1 := meter.Int64Gauge("registry.audit.problems", metric.WithUnit("{problem}"),
		metric.WithDescription("What the last check of the audit log by this process has found wrong."))
	checked, err2 := meter.Float64Gauge("registry.audit.checked", metric.WithUnit("s"),
		metric.WithDescription("When this process has last checked the audit log, since the epoch."))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	s.found = &found{problems, checked}
	return nil
}

func (f *found) record(ctx context.Context, problems int, now time.Time) {
	if f == nil {
		return
	}
	f.problems.Record(ctx, int64(problems))
	f.checked.Record(ctx, float64(now.UnixMilli())/1000)
}
