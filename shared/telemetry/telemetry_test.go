package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/testing/expect"
)

func TestAWrongNameOfAMetricIsAnErrorOfTheProgram(t *testing.T) {
	defer func() {
		expect.ErrorIf(t, recover() == nil, "got a metric with a space in its name, want a panic")
	}()
	Counter(sdkmetric.NewMeterProvider().Meter("test"), "a name", "", "")
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
	expect.Equal(t, strings.Join(names, " "), "child request", "the spans")
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
		expect.OK(t, err)
		expect.Get(client.RoundTrip(r))(t)
	}
	send(t.Context())
	expect.ErrorIf(t, got.Get("Traceparent") != "", "outside of a trace: got a Traceparent header, want none")
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
	expect.ErrorIf(t, forged.Get("Traceparent") != "", "got the client's Traceparent passed on, want it removed")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
