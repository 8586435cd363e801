package filesvc

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// measure registers the metrics of the service. Close unregisters them.
func (s *Server) measure(meter metric.Meter) error {
	behind, err1 := meter.Float64ObservableGauge("registry.files.behind", metric.WithUnit("s"),
		metric.WithDescription("Time since the file service last read the feed of assets to its end."))
	uploads, err2 := meter.Int64ObservableCounter("registry.files.uploads", metric.WithUnit("{upload}"),
		metric.WithDescription("Uploads by their end: stored, refused, quota (of the broker), full (no room), failed."))
	collected, err3 := meter.Int64ObservableCounter("registry.files.collected", metric.WithUnit("{file}"),
		metric.WithDescription("Files that were removed because no document names them."))
	removed, err4 := meter.Int64ObservableCounter("registry.files.removed", metric.WithUnit("{file}"),
		metric.WithDescription("Files that an administrator has removed, and those with the same bytes."))
	carried, err5 := meter.Int64ObservableCounter("registry.files.bytes", metric.WithUnit("By"),
		metric.WithDescription("Bytes of files that were stored (in) and sent (out)."))
	unread, err6 := meter.Int64ObservableCounter("registry.files.unread", metric.WithUnit("{reading}"),
		metric.WithDescription("Readings of files that failed, because the bytes were missing, damaged or away."))
	pictures, err7 := meter.Int64ObservableCounter("registry.files.pictures", metric.WithUnit("{file}"),
		metric.WithDescription("Files of illustrations by result: made, none (no picture, or too much), or given-up."))
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return fmt.Errorf("create metrics: %w", err)
	}
	counts := &s.files.Counts
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveFloat64(behind, s.config.Now().Sub(*s.followed.Load()).Seconds())
		o.ObserveInt64(collected, counts.Collected.Load())
		o.ObserveInt64(removed, counts.Removed.Load())
		o.ObserveInt64(unread, counts.Unread.Load())
		for result, n := range map[string]int64{
			"made": counts.Drawn.Load(), "none": counts.Undrawn.Load(), "given-up": counts.GivenUp.Load(),
		} {
			o.ObserveInt64(pictures, n, metric.WithAttributes(attribute.String("result", result)))
		}
		for direction, n := range map[string]int64{"in": counts.Received.Load(), "out": counts.Sent.Load()} {
			o.ObserveInt64(carried, n, metric.WithAttributes(attribute.String("direction", direction)))
		}
		for result, n := range map[string]int64{
			"stored": counts.Stored.Load(), "refused": counts.Refused.Load(), "quota": counts.Quota.Load(),
			"full": counts.Full.Load(), "failed": counts.Failed.Load(),
		} {
			o.ObserveInt64(uploads, n, metric.WithAttributes(attribute.String("result", result)))
		}
		return nil
	}, behind, uploads, collected, removed, carried, unread, pictures)
	if err != nil {
		return fmt.Errorf("create metrics: %w", err)
	}
	s.silences = append(s.silences, registration.Unregister)
	silence, err := telemetry.MeasureStore(meter, "files", func(context.Context) telemetry.StoreUse {
		use := telemetry.StoreUse{Size: s.kept.Load()}
		var disk syscall.Statfs_t
		if err := syscall.Statfs(s.config.Bytes, &disk); err == nil && !IsBucket(s.config.Bytes) {
			use.DiskFree, use.DiskSize = int64(disk.Bavail)*int64(disk.Bsize), int64(disk.Blocks)*int64(disk.Bsize)
		}
		return use
	})
	if err != nil {
		return err
	}
	s.silences = append(s.silences, silence)
	return nil
}
