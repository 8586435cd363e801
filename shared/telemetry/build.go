package telemetry

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
)

// build returns the program's version, revision and Go version, as far as known.
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
	return []attribute.KeyValue{
		semconv.ServiceVersion(version), semconv.VCSRefHeadRevision(revision), semconv.ProcessRuntimeVersion(runtime),
	}
}

// measureBuild registers a metric whose value is 1 and whose labels are the build.
// With it, operators can compare changes of behaviour with changes of version.
func measureBuild(meter metric.Meter) error {
	attributes := metric.WithAttributes(build()...)
	_, err := meter.Int64ObservableGauge("registry.build.info",
		metric.WithDescription("Always 1; the labels describe the build of the program."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, attributes)
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metric: %w", err)
	}
	return nil
}
