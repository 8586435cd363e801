package daemon

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestACollectorThatIsAwayIsNoFault(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	process := Process{Name: "service", MetricsAddr: "127.0.0.1:0"}
	told, stop, err := process.Observe(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, span := told.Tracer().Start(t.Context(), "x", trace.WithSpanKind(trace.SpanKindServer))
	span.End() // gives the exporter a span
	if err := stop(); err != nil {
		t.Errorf("stop: got %v, want nil", err)
	}
}
