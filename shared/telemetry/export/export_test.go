package export

import (
	"errors"
	"log/slog"
	"maps"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/testing/expect"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestWithoutACollectorNothingIsRecorded(t *testing.T) {
	told, err := Start(t.Context(), "service", quiet())
	expect.OK(t, err)
	defer told.Close()
	expect.ErrorIf(t, told.Sample(), "got a request sampled, want none")
	counter, err := told.Meter().Int64Counter("registry.test.things")
	expect.OK(t, err)
	counter.Add(t.Context(), 3)
	recorder := httptest.NewRecorder()
	told.Metrics().ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		"registry_test_things_total{", "} 3\n", `service_name="service"`, "go_build_info", `registry_build_info{`,
		`process_runtime_version="` + runtime.Version() + `"`, "go_memory_used_bytes", "process_resident_memory_bytes",
	} {
		expect.ErrorIf(t, !strings.Contains(recorder.Body.String(), want), "got %s, want %s in it", recorder.Body, want)
	}
}

func TestFiguresAreGaugesAndCountersWithTheirLabels(t *testing.T) {
	told, err := Start(t.Context(), "service", quiet())
	expect.OK(t, err)
	defer told.Close()
	counter, err1 := told.Meter().Int64Counter("registry.test.things")
	gauge, err2 := told.Meter().Float64Gauge("registry.test.age", metric.WithUnit("s"))
	lasts, err3 := told.Meter().Float64Histogram("registry.test.lasts")
	expect.OK(t, errors.Join(err1, err2, err3))
	counter.Add(t.Context(), 3, metric.WithAttributes(attribute.String("kind", "new")))
	gauge.Record(t.Context(), 1.5)
	lasts.Record(t.Context(), 1)
	all, err := told.Figures()
	expect.OK(t, err)
	got := map[string]float64{}
	for _, f := range all {
		if strings.HasPrefix(f.Name, "registry_test_") {
			got[f.Name+" "+f.Labels["kind"]] = f.Value
		}
	}
	want := map[string]float64{"registry_test_things_total new": 3, "registry_test_age_seconds ": 1.5}
	expect.ErrorIf(t, !maps.Equal(got, want), "got %v, want %v", got, want)
}

func TestACollectorThatIsAwayIsNoError(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	told, err := Start(t.Context(), "service", quiet())
	expect.OK(t, err)
	expect.ErrorIf(t, !told.Sample(), "with a collector: got no request sampled, want all")
	_, span := told.Tracer().Start(t.Context(), "x", trace.WithSpanKind(trace.SpanKindServer))
	span.End()
	told.Close()
}

func TestTheStandardsSamplersSetTheShare(t *testing.T) {
	for _, c := range []struct {
		name, sampler, argument string
		share                   float64
		fails                   bool
	}{
		{"no sampler samples all", "", "", 1, false},
		{"always_on", "parentbased_always_on", "", 1, false},
		{"always_off", "always_off", "", 0, false},
		{"a ratio", "parentbased_traceidratio", "0.01", 0.01, false},
		{"a ratio above 1", "traceidratio", "1.5", 0, true},
		{"a ratio without an argument", "traceidratio", "", 0, true},
		{"an unknown sampler", "jaeger_remote", "", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
			t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.argument)
			if share, err := shareFromEnvironment(); share != c.share || (err != nil) != c.fails {
				t.Errorf("got %v, %v; want %v, error: %t", share, err, c.share, c.fails)
			}
		})
	}
}

// TestARenamedMetricHasBothNames tells a moment under its new name. Prometheus gets it under the former one too.
func TestARenamedMetricHasBothNames(t *testing.T) {
	told := expect.Get(Start(t.Context(), "service", quiet()))(t)
	defer told.Close()
	gauge := expect.Get(told.Meter().Float64Gauge("registry.backup.finished.timestamp", metric.WithUnit("s")))(t)
	gauge.Record(t.Context(), 7)
	got := map[string]float64{}
	for _, f := range expect.Get(told.Figures())(t) {
		if strings.HasPrefix(f.Name, "registry_backup") {
			got[f.Name] = f.Value
		}
	}
	want := map[string]float64{"registry_backup_finished_timestamp_seconds": 7, "registry_backup_finished_seconds": 7}
	expect.ErrorIf(t, !maps.Equal(got, want), "got %v, want %v", got, want)
}
