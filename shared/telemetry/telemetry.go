// Package telemetry makes a service's traces and metrics with OpenTelemetry. Package export sends them to a
// collector. The packages are separate because the exporters are large. Most packages make telemetry, but only
// programs need the exporters.
//
// The edge decides once whether a request is traced, before it makes a span. Other
// code needs no tracer: if the context has a recorded span, Child makes a child of
// this span, and otherwise it does nothing.
package telemetry

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
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

// propagator reads and writes the headers of W3C Trace Context.
var propagator propagation.TraceContext

// Child starts a child of the span in ctx. If the span in ctx is not recorded, the returned span does nothing.
func Child(
	ctx context.Context, kind trace.SpanKind, name string, attributes ...attribute.KeyValue,
) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	tracer := parent.TracerProvider().Tracer(Scope)
	return tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// End ends a span and marks it as failed if err is not nil. It does not record the
// text of err, which may quote a client.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(semconv.ErrorTypeOther)
	}
	span.End()
}

// Server returns the attributes of the server that has the given host, perhaps with a port.
func Server(host, scheme string) []attribute.KeyValue {
	at := url.URL{Host: host}
	port, err := strconv.Atoi(at.Port())
	switch {
	case err == nil:
	case scheme == "https":
		port = 443
	default:
		port = 80
	}
	return []attribute.KeyValue{semconv.ServerAddress(at.Hostname()), semconv.ServerPort(port)}
}

// TraceID returns the id of the recorded trace in ctx, or "" if ctx has none.
func TraceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		return span.TraceID().String()
	}
	return ""
}

// Extract returns ctx with the trace in the header of a request from another of
// our services. It reports whether that trace is recorded.
func Extract(ctx context.Context, header http.Header) (context.Context, bool) {
	ctx = propagator.Extract(ctx, propagation.HeaderCarrier(header))
	return ctx, trace.SpanContextFromContext(ctx).IsSampled()
}

// Inject writes the trace of ctx into a request's header if the trace is recorded. It always removes a trace that
// the header had before.
func Inject(ctx context.Context, header http.Header) {
	header.Del("Traceparent")
	header.Del("Tracestate")
	if trace.SpanContextFromContext(ctx).IsSampled() {
		propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Transport returns a transport that makes a span for each request of a recorded
// trace, and writes the trace into the request's header.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := Child(r.Context(), trace.SpanKindClient, r.Method,
		semconv.HTTPRequestMethodKey.String(r.Method))
	if !span.IsRecording() {
		return t.next.RoundTrip(r)
	}
	whole := url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path} // a query may have a token
	span.SetAttributes(append(Server(r.URL.Host, r.URL.Scheme), semconv.URLFull(whole.String()))...)
	r = r.Clone(ctx)
	Inject(ctx, r.Header)
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		span.SetAttributes(semconv.HTTPResponseStatusCode(resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest {
			span.SetStatus(codes.Error, "")
			span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(resp.StatusCode)))
		}
	}
	End(span, err)
	return resp, err
}

// CloseIdleConnections closes the idle connections of the next transport.
func (t transport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
