package export

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/buildinfo"
	"asset-registry/shared/errs"
)

// build returns the program's version, revision and Go version, as far as known.
func build() []attribute.KeyValue {
	info := buildinfo.Read()
	return []attribute.KeyValue{
		semconv.ServiceVersion(info.Version), semconv.VCSRefHeadRevision(info.Revision),
		semconv.ProcessRuntimeVersion(info.Go),
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
	return errs.In(err, "make metric")
}
