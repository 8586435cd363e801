package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

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
	}
	span.End()
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
		semconv.HTTPRequestMethodKey.String(r.Method), semconv.ServerAddress(r.URL.Host), semconv.URLPath(r.URL.Path))
	if !span.IsRecording() {
		return t.next.RoundTrip(r)
	}
	r = r.Clone(ctx)
	Inject(ctx, r.Header)
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		span.SetAttributes(semconv.HTTPResponseStatusCode(resp.StatusCode))
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
