package filesvc

import (
	"context"
	"fmt"
	"syscall"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// measure registers the metrics of the service. Close unregisters them.
func (s *Server) measure(meter metric.Meter) error {
	observed := telemetry.Observe(meter)
	behind := observed.Seconds("registry.files.behind",
		"Time since the file service last read the feed of assets to its end.")
	uploads := observed.Counter("registry.files.uploads", "{upload}",
		"Uploads by their end: stored, refused, quota (of the broker), full (no room), failed.")
	collected := observed.Counter("registry.files.collected", "{file}",
		"Files that were removed because no document names them.")
	removed := observed.Counter("registry.files.removed", "{file}",
		"Files that an administrator has removed, and those with the same bytes.")
	carried := observed.Counter("registry.files.bytes", "By", "Bytes of files that were stored (in) and sent (out).")
	unread := observed.Counter("registry.files.unread", "{reading}",
		"Readings of files that failed, because the bytes were missing, damaged or away.")
	pictures := observed.Counter("registry.files.pictures", "{file}",
		"Files of illustrations by result: made, none (no picture, or too much), or given-up.")
	counts := &s.files.Counts
	silence, err := observed.Read(func(_ context.Context, o metric.Observer) {
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
	})
	if err != nil {
		return fmt.Errorf("create metrics: %w", err)
	}
	s.silences = append(s.silences, silence)
	silence, err = telemetry.MeasureStore(meter, "files", func(context.Context) telemetry.StoreUse {
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
