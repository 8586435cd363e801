package httpserver

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"asset-registry/shared/fault"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

func TestFailuresCountFromZero(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	engine := NewEngine(Options{
		Name: "test", Log: slog.New(slog.DiscardHandler), Timeout: time.Minute,
		Telemetry: telemetry.New(noop.NewTracerProvider(), meters, 0),
	})
	fails := Handle(func(*gin.Context) error { return errors.New("defect") })
	for _, path := range []string{"/api/2.5/assets", "/internal/v1/keys", "/page"} {
		engine.GET(path, fails)
	}
	engine.GET("/api/2.5/refused", Handle(func(*gin.Context) error {
		return fault.New(fault.Forbidden, fault.URL, "id", "no")
	}))
	engine.GET("/api/2.5/broken", func(*gin.Context) { panic("defect") })
	engine.GET("/api/2.5/search", Handle(func(c *gin.Context) error {
		Aside(c)
		return fault.New(fault.Unavailable, fault.URL, "search", "The index is being built.")
	}))
	engine.GET("/api/2.5/defect", Handle(func(c *gin.Context) error {
		Aside(c)
		return errors.New("defect")
	}))
	count := func() (int64, int) { return counted(t, reader, "registry.http.failures") }
	if total, series := count(); total != 0 || series != 1 {
		t.Fatalf("at the start: got %d failures in %d series, want 0 in 1", total, series)
	}
	for path, want := range map[string]int64{
		"/api/2.5/assets": 1, "/internal/v1/keys": 1, "/api/2.5/broken": 1, "/api/2.5/refused": 0, "/page": 0, "/nowhere": 0,
		"/api/2.5/search": 0, "/api/2.5/defect": 1,
	} {
		before, _ := count()
		engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		if after, series := count(); after-before != want || series != 1 {
			t.Errorf("GET %s: got %d more failures in %d series, want %d in 1", path, after-before, series, want)
		}
	}
}

// counted returns the value of a counter or the count of a histogram, and how many series it has.
func counted(t *testing.T, reader sdkmetric.Reader, name string) (total int64, series int) {
	t.Helper()
	var all metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, is := m.Data.(metricdata.Sum[int64]); is && m.Name == name {
			for _, p := range sum.DataPoints {
				total, series = total+p.Value, series+1
			}
		}
		if of, is := m.Data.(metricdata.Histogram[float64]); is && m.Name == name {
			for _, p := range of.DataPoints {
				total, series = total+int64(p.Count), series+1
			}
		}
	}
	return total, series
}
