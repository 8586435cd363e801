package httpserver

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"asset-registry/shared/telemetry"
)

// late stands for a slow client: each read and write takes a second.
type late struct{ *httptest.ResponseRecorder }

func (late) Read([]byte) (int, error) {
	time.Sleep(time.Second)
	return 0, io.EOF
}

func (w late) Write(p []byte) (int, error) {
	time.Sleep(time.Second)
	return w.ResponseRecorder.Write(p)
}

// TestSlowAnswers counts answers that begin late, in virtual time. A slow connection of the client does not
// make an answer slow.
func TestSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		engine := NewEngine(Options{
			Name: "test", Log: slog.New(slog.DiscardHandler), Timeout: time.Minute, Edge: true,
			Telemetry: telemetry.New(noop.NewTracerProvider(), meters, 0),
		})
		think := func(d time.Duration) gin.HandlerFunc {
			return func(c *gin.Context) {
				time.Sleep(d)
				c.String(http.StatusOK, "answer")
			}
		}
		engine.GET("/api/2.5/soon", think(400*time.Millisecond))
		engine.GET("/api/2.5/late", think(600*time.Millisecond))
		engine.GET("/api/2.5/wait", Long, think(600*time.Millisecond))
		engine.GET("/page", think(600*time.Millisecond))
		engine.GET("/api/2.5/empty", func(c *gin.Context) {
			time.Sleep(600 * time.Millisecond)
			c.Status(http.StatusNoContent)
		})
		engine.GET("/api/2.5/rest", func(c *gin.Context) {
			c.Writer.Flush()
			time.Sleep(600 * time.Millisecond)
			c.String(http.StatusOK, "answer")
		})
		engine.POST("/api/2.5/body", func(c *gin.Context) {
			_, _ = io.ReadAll(c.Request.Body)
			c.String(http.StatusOK, "answer")
		})
		if total, series := counted(t, reader, "registry.http.slow"); total != 0 || series != 1 {
			t.Fatalf("at the start: got %d slow answers in %d series, want 0 in 1", total, series)
		}
		for _, c := range []struct {
			method, path string
			want         int64
		}{
			{http.MethodGet, "/api/2.5/soon", 0},
			{http.MethodGet, "/api/2.5/late", 1},
			{http.MethodGet, "/api/2.5/empty", 1},
			{http.MethodGet, "/api/2.5/wait", 0},
			{http.MethodGet, "/page", 0},
			{http.MethodGet, "/api/2.5/rest", 0},
			{http.MethodPost, "/api/2.5/body", 0},
		} {
			before, _ := counted(t, reader, "registry.http.slow")
			line := late{httptest.NewRecorder()}
			engine.ServeHTTP(line, httptest.NewRequest(c.method, c.path, line))
			if after, _ := counted(t, reader, "registry.http.slow"); after-before != c.want {
				t.Errorf("%s %s: got %d more slow answers, want %d", c.method, c.path, after-before, c.want)
			}
		}
	})
}
