package telemetry

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
)

// build is what the linker has written into this program about itself.
func build() []attribute.KeyValue {
	version, revision, runtime := "unknown", "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, runtime = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return []attribute.KeyValue{semconv.ServiceVersion(version), semconv.VCSRefHeadRevision(revision), semconv.ProcessRuntimeVersion(runtime)}
}

// tellBuild makes a metric of it, always 1: so a change of behaviour can be
// laid beside a change of version, and processes of different versions be seen.
func tellBuild(meter metric.Meter) error {
	of := metric.WithAttributes(build()...)
	_, err := meter.Int64ObservableGauge("registry.build.info", metric.WithDescription("1, with what the program was built of."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, of)
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metric: %w", err)
	}
	return nil
}
