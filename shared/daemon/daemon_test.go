package daemon

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/testing/expect"
)

func TestACollectorThatIsAwayIsNoFault(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	process := Process{Name: "service", MetricsAddr: "127.0.0.1:0"}
	told, stop, err := process.Observe(t.Context(), slog.New(slog.DiscardHandler))
	expect.OK(t, err)
	_, span := told.Tracer().Start(t.Context(), "x", trace.WithSpanKind(trace.SpanKindServer))
	span.End() // gives the exporter a span
	expect.Err(t, stop(), nil, "stop")
}
