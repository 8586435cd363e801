package httpserver

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

// TestTelemetryFollowsTheConventions compares names and attributes of spans and of the duration with the HTTP
// conventions of OpenTelemetry 1.37.0: those of a matched route, of none, of a defect, and of an odd method.
func TestTelemetryFollowsTheConventions(t *testing.T) {
	expect.Equal(t, semconv.SchemaURL, "https://opentelemetry.io/schemas/1.37.0", "the conventions of this test")
	kept, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	told := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithSampler(telemetry.Sampler())),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), 1)
	engine := NewEngine(Options{
		Name: "edge", Edge: true, Log: slog.New(slog.DiscardHandler), Timeout: time.Minute, Telemetry: told,
	})
	next := telemetry.Transport(always(http.StatusConflict))
	engine.GET("/api/2.5/assets/:id", func(c *gin.Context) {
		r := expect.Get(http.NewRequestWithContext(c.Request.Context(), "PUT", "https://u:p@[::1]:8443/x?acc_token=s", nil))(t)
		expect.Get(next.RoundTrip(r))(t)
		c.Status(http.StatusConflict)
	})
	engine.GET("/api/2.5/defect", func(c *gin.Context) { c.Status(http.StatusBadGateway) })
	for _, line := range []string{
		"GET https://r.example/api/2.5/assets/7", "GET http://r.example:81/nowhere", "GET http://r.example/api/2.5/defect",
		"BREW http://r.example/nowhere",
	} {
		method, url, _ := strings.Cut(line, " ")
		r := httptest.NewRequest(method, url, nil)
		r.Header.Set(RequestIDHeader, "one")
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		engine.ServeHTTP(httptest.NewRecorder(), r)
	}
	const header = ` http.request.header.x-request-id=["one"]`
	want := []string{
		`client PUT Error error.type=409 http.request.method=PUT http.response.status_code=409 server.address=::1 server.port=8443` +
			` url.full=https://[::1]:8443/x`,
		`server GET /api/2.5/assets/:id Unset` + header + ` http.request.method=GET http.response.status_code=409` +
			` http.route=/api/2.5/assets/:id server.address=r.example server.port=443 url.path=/api/2.5/assets/7 url.scheme=https`,
		`server GET Unset` + header + ` http.request.method=GET http.response.status_code=404 server.address=r.example` +
			` server.port=81 url.path=/nowhere url.scheme=http`,
		`server GET /api/2.5/defect Error error.type=502` + header + ` http.request.method=GET http.response.status_code=502` +
			` http.route=/api/2.5/defect server.address=r.example server.port=80 url.path=/api/2.5/defect url.scheme=http`,
		`server HTTP Unset` + header + ` http.request.method=_OTHER http.request.method_original=BREW` +
			` http.response.status_code=404 server.address=r.example server.port=80 url.path=/nowhere url.scheme=http`,
	}
	var got []string
	for _, s := range kept.GetSpans() {
		got = append(got, fmt.Sprintf("%s %s %s %s", s.SpanKind, s.Name, s.Status.Code, texts(s.Attributes)))
		if s.SpanKind == trace.SpanKindServer && (len(s.Links) != 1 || s.Parent.IsValid() ||
			s.Links[0].SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c") {
			t.Errorf("%s: got the links %v and the parent %v, want the client's trace and none", s.Name, s.Links, s.Parent)
		}
	}
	expect.NoDiff(t, cmp.Diff(want, got), "spans")

	var all metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &all))
	got = nil
	for _, m := range all.ScopeMetrics[0].Metrics {
		if of, is := m.Data.(metricdata.Histogram[float64]); is && m.Name == "http.server.request.duration" {
			for _, p := range of.DataPoints {
				got = append(got, m.Unit+" "+texts(p.Attributes.ToSlice()))
			}
		}
	}
	slices.Sort(got)
	const ours = ` registry.service=edge registry.tenant.class=anonymous url.scheme=http`
	want = []string{
		`s error.type=502 http.request.method=GET http.response.status_code=502 http.route=/api/2.5/defect registry.api.version=2.5` + ours,
		`s http.request.method=GET http.response.status_code=404` + ours,
		`s http.request.method=GET http.response.status_code=409 http.route=/api/2.5/assets/:id registry.api.version=2.5` + ours + "s",
		`s http.request.method=_OTHER http.response.status_code=404` + ours,
	}
	expect.NoDiff(t, cmp.Diff(want, got), "durations")
}

// texts returns attributes as one text, ordered by name.
func texts(of []attribute.KeyValue) string {
	var all []string
	for _, a := range of {
		all = append(all, string(a.Key)+"="+a.Value.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// always is a transport whose answers have this status.
type always int

func (status always) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(status), Body: io.NopCloser(strings.NewReader(""))}, nil
}
