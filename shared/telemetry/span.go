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

// propagator carries a trace from service to service (W3C Trace Context).
var propagator propagation.TraceContext

// Child starts a span of a kind within the one of ctx, if that is recorded.
// Otherwise the span that it returns does nothing.
func Child(ctx context.Context, kind trace.SpanKind, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// End ends a span, with the kind of error that its work ended in, if it did.
// Errors' texts stay in the log: they may quote what a client sent.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// TraceID returns the id of the trace that ctx is recorded in, "" for none.
func TraceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		return span.TraceID().String()
	}
	return ""
}

// Extract returns ctx in the trace that a request from another of our services
// belongs to, if that is recorded.
func Extract(ctx context.Context, header http.Header) (context.Context, bool) {
	ctx = propagator.Extract(ctx, propagation.HeaderCarrier(header))
	return ctx, trace.SpanContextFromContext(ctx).IsSampled()
}

// Inject says in a request's header what trace ctx belongs to, if it is
// recorded, and otherwise nothing.
func Inject(ctx context.Context, header http.Header) {
	header.Del("Traceparent")
	header.Del("Tracestate")
	if trace.SpanContextFromContext(ctx).IsSampled() {
		propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Transport makes a span of each request that is part of a recorded trace, and
// carries the trace along.
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

// CloseIdleConnections closes those of the transport behind.
func (t transport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
