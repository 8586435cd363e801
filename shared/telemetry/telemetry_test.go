package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestWithoutACollectorNothingIsRecorded(t *testing.T) {
	told, err := Start(t.Context(), "service", quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	if told.Sample() {
		t.Error("got a request sampled, want none")
	}
	counter, err := told.Meter().Int64Counter("registry.test.things")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 3)
	recorder := httptest.NewRecorder()
	told.Metrics().ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		"registry_test_things_total{", "} 3\n", `service_name="service"`, "go_build_info", `registry_build_info{`,
		`process_runtime_version="` + runtime.Version() + `"`, "go_memory_used_bytes", "process_resident_memory_bytes",
	} {
		if !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("got %s, want %s in it", recorder.Body, want)
		}
	}
}

func TestACollectorThatIsAwayIsNoError(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	told, err := Start(t.Context(), "service", quiet())
	if err != nil {
		t.Fatal(err)
	}
	if !told.Sample() {
		t.Error("with a collector: got no request sampled, want all")
	}
	_, span := told.Tracer().Start(t.Context(), "x", trace.WithSpanKind(trace.SpanKindServer))
	span.End()
	told.Close()
}

func TestTheStandardsSamplersSetTheShare(t *testing.T) {
	for _, c := range []struct {
		name              string
		sampler, argument string
		share             float64
		fails             bool
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

func TestAboutTheShareIsChosen(t *testing.T) {
	const asked = 100_000
	chosen, told := 0, New(nil, nil, 0.1)
	for range asked {
		if told.Sample() {
			chosen++
		}
	}
	if chosen < asked/10-1000 || chosen > asked/10+1000 { // ten standard deviations
		t.Errorf("got %d of %d sampled, want about a tenth", chosen, asked)
	}
}

// recording returns a provider, and the exporter that keeps its spans.
func recording() (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithSampler(Sampler())), kept
}

func TestOnlyWhatARequestLeadsToIsRecorded(t *testing.T) {
	tracers, kept := recording()
	tracer := New(tracers, nil, 1).Tracer()
	_, background := tracer.Start(t.Context(), "work in the background")
	background.End()
	_, nobody := Child(t.Context(), trace.SpanKindClient, "child of nobody")
	nobody.End()
	ctx, request := tracer.Start(t.Context(), "request", trace.WithSpanKind(trace.SpanKindServer))
	_, child := Child(ctx, trace.SpanKindClient, "child")
	End(child, errors.New("secret"))
	request.End()
	var names []string
	for _, s := range kept.GetSpans() {
		names = append(names, s.Name+s.Status.Description)
	}
	if got := strings.Join(names, " "); got != "child request" {
		t.Errorf("got the spans %q, want %q", got, "child request")
	}
}

func TestATraceTravelsWithARequest(t *testing.T) {
	tracers, kept := recording()
	var got http.Header
	client := Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	send := func(ctx context.Context) {
		r, err := http.NewRequestWithContext(ctx, "POST", "http://service/path?acc_token=secret", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
	}
	send(t.Context())
	if got.Get("Traceparent") != "" {
		t.Error("outside of a trace: got a Traceparent header, want none")
	}
	ctx, request := New(tracers, nil, 1).Tracer().Start(t.Context(), "request", trace.WithSpanKind(trace.SpanKindServer))
	send(ctx)
	request.End()
	arrived, recorded := Extract(t.Context(), got)
	if !recorded || TraceID(arrived) != TraceID(ctx) {
		t.Errorf("Traceparent %q: got trace %q, recorded: %t; want %q, true",
			got.Get("Traceparent"), TraceID(arrived), recorded, TraceID(ctx))
	}
	for _, s := range kept.GetSpans() {
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "secret") {
				t.Errorf("span %s: got the attribute %s, want no secret in it", s.Name, a.Value.String())
			}
		}
	}
	forged := http.Header{"Traceparent": {"00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"}}
	Inject(t.Context(), forged)
	if forged.Get("Traceparent") != "" {
		t.Error("got the client's Traceparent passed on, want it removed")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
