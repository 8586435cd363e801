package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// TestASettingOfBeforeOnlyWarns starts with the setting in each source.
func TestASettingOfBeforeOnlyWarns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	expect.OK(t, os.WriteFile(file, []byte("http-server: std\n"), 0o600))
	for name, c := range map[string]struct {
		variable string
		args     []string
	}{
		"flag": {"", []string{"--http-server=lean"}}, "file": {"", []string{"--config", file}}, "variable": {"std", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv("SERVICE_HTTP_SERVER", c.variable)
			}
			var p Process
			expect.ErrOf(t, nil, "")(config.Parse(&p, "service", "", "SERVICE", c.args))
			expect.Equal(t, len(p.warnings), 1, "warnings")
		})
	}
}

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
