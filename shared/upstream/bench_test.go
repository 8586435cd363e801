package upstream

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/testing/expect"
)

// clients is the number of goroutines that send requests at the same time.
const clients = 64

// BenchmarkRoundTrip compares a Pool with the transport of the standard library. The server runs in the same process, so each figure includes its
// cost. The figure cpu-ns/op is the process's user and system time per request.
//
//	go test -run '^$' -bench RoundTrip -count 10 ./shared/upstream | benchstat -col /transport -
func BenchmarkRoundTrip(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 3000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.ErrOf(b, nil, "")(io.Copy(io.Discard, r.Body))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body) // an error here is a lost connection, which the client reports
	}))
	defer server.Close()
	pool, err := New(Config{
		Name: "bench", URLs: []string{server.URL}, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
	})
	expect.OK(b, err)
	defer pool.Close()
	standard := &http.Transport{ // with a Pool's limits
		MaxIdleConnsPerHost: maxIdle, ReadBufferSize: bufferSize, WriteBufferSize: bufferSize, DisableCompression: true,
	}
	defer standard.CloseIdleConnections()
	for _, exchange := range []struct{ method, body string }{
		{http.MethodGet, ""},
		{http.MethodPatch, `{"data":{"title":"` + strings.Repeat("t", 100) + `"}}`},
	} {
		for _, c := range []struct {
			name      string
			transport http.RoundTripper
		}{
			{"Pool", pool},
			{"Transport", standard},
		} {
			b.Run("method="+exchange.method+"/transport="+c.name, func(b *testing.B) {
				benchmarkExchange(b, c.transport, server.URL, exchange.method, exchange.body)
			})
		}
	}
}

func benchmarkExchange(b *testing.B, transport http.RoundTripper, address, method, body string) {
	b.ReportAllocs()
	b.SetParallelism((clients + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	before := cpuTime(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := sendOne(b.Context(), transport, address, method, body); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// sendOne sends a request with a deadline, as the services do, and reads the
// whole answer.
func sendOne(ctx context.Context, transport http.RoundTripper, address, method, body string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// cpuTime returns the process's user and system time up to now.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	expect.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
