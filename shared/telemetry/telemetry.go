// Package telemetry makes a service's traces and metrics with OpenTelemetry. Package export sends them to a
// collector. The packages are separate because the exporters are large. Most packages make telemetry, but only
// programs need the exporters.
//
// The edge decides once whether a request is traced, before it makes a span. Other
// code needs no tracer: if the context has a recorded span, Child makes a child of
// this span, and otherwise it does nothing.
package telemetry

import (
	"math/rand/v2"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// Scope is the name of our instrumentation in exported data.
const Scope = "asset-registry"

// Telemetry makes a process's traces and metrics. The zero value makes none.
type Telemetry struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	share   float64 // share of the edge's requests that are traced, from 0 to 1
}

// New returns telemetry that uses the given providers. If a provider is nil, the telemetry makes no traces or no
// metrics. The argument `share` is the share of the edge's requests that are traced, from 0 to 1.
func New(tracers trace.TracerProvider, meters metric.MeterProvider, share float64) *Telemetry {
	return &Telemetry{tracers: tracers, meters: meters, share: share}
}

// Sample decides at random whether the edge traces a request.
func (t *Telemetry) Sample() bool {
	return t.share > 0 && (t.share >= 1 || rand.Float64() < t.share)
}

// Tracer returns the tracer for the first span of a trace in this process.
func (t *Telemetry) Tracer() trace.Tracer {
	if t.tracers == nil {
		return nooptrace.NewTracerProvider().Tracer(Scope)
	}
	return t.tracers.Tracer(Scope)
}

// Meter returns the meter for the process's metrics.
func (t *Telemetry) Meter() metric.Meter {
	if t.meters == nil {
		return noopmetric.NewMeterProvider().Meter(Scope)
	}
	return t.meters.Meter(Scope)
}

// Sampler returns a sampler. A span with a parent is recorded if its parent is recorded. A span without a parent is
// recorded only if its kind is server. The edge makes such a span only for a request that Sample chose. Spans of
// background work are of a different kind, so they are not recorded.
func Sampler() sdktrace.Sampler { return sampler{} }

type sampler struct{}

func (sampler) Description() string { return "decided at the edge" }

func (sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	result := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: parent.TraceState()}
	if parent.IsSampled() || !parent.IsValid() && p.Kind == trace.SpanKindServer {
		result.Decision = sdktrace.RecordAndSample
	}
	return result
}
