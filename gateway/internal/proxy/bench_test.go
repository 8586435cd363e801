package proxy

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
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/upstream"
)

// clients is the number of goroutines that send requests at the same time.
const clients = 64

// BenchmarkForward compares the two transports behind the gateway's proxy: a
// pool of package upstream and the standard library's. The asset service runs
// in the same process, so its cost is part of every figure.
//
//	go test -run '^$' -bench Forward -count 10 ./gateway/internal/proxy | benchstat -col /transport -
func BenchmarkForward(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 3000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.ErrOf(b, nil, "")(io.Copy(io.Discard, r.Body))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body) // if the connection is lost, the client reports it
	}))
	defer server.Close()
	signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now)
	expect.OK(b, err)
	pool, err := upstream.New(upstream.Config{
		Name: "assetsvc", URLs: []string{server.URL}, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
	})
	expect.OK(b, err)
	defer pool.Close()
	standard := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
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
				u := Remote(c.transport, signer)
				b.ReportAllocs()
				b.SetParallelism((clients + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := forwardOne(b.Context(), u, server.URL, exchange.method, exchange.body); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// forwardOne passes a request through the proxy, with a deadline.
func forwardOne(ctx context.Context, u *Upstream, address, method, body string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	return u.Forward(&discarded{header: http.Header{}}, r, Request{
		Path: "/api/2.5/assets", Caller: identity.Identity{Broker: "broker", Role: identity.Broker, KeyID: "k"},
	})
}

// discarded is an http.ResponseWriter that discards the status and the body.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(int)             {}
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
