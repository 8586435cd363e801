package upstream

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/mux"
)

// callsServer is a server of calls that can be killed.
type callsServer struct {
	*mux.Server
	http  *http.Server
	url   string
	plain atomic.Int64 // requests that came without calls, save those of checks
	conns chan net.Conn
}

func startCalls(t *testing.T, handler http.HandlerFunc) *callsServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &callsServer{url: "http://" + listener.Addr().String(), conns: make(chan net.Conn, 100)}
	s.Server = mux.NewServer(handler, slog.New(slog.DiscardHandler))
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != mux.Path && r.URL.Path != "/readyz" {
				s.plain.Add(1)
			}
			s.Server.ServeHTTP(w, r)
		}),
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateHijacked {
				s.conns <- c
			}
		},
	}
	go s.http.Serve(listener)
	t.Cleanup(func() { s.http.Close() })
	return s
}

func newCallingPool(t *testing.T, urls ...string) *Pool {
	t.Helper()
	p, err := New(Config{Name: "test", URLs: urls, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{}, Calls: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// awaitCalls sends requests until n servers are called.
func awaitCalls(t *testing.T, p *Pool, n int) {
	t.Helper()
	for p.called() < n {
		if _, _, err := ask(t, p, "GET", "/", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestRequestsGoByCallsOnceTheyCan(t *testing.T) {
	s := startCalls(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	p := newCallingPool(t, s.url)
	awaitCalls(t, p, 1)
	before := s.plain.Load()
	for range 10 {
		if _, got, err := ask(t, p, "POST", "/", "body"); err != nil || got != "body" {
			t.Fatalf("got %q, %v; want %q", got, err, "body")
		}
	}
	if got := s.plain.Load() - before; got != 0 {
		t.Errorf("got %d requests by plain HTTP, want 0", got)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://service/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Words", "слова") // calls do not carry it
	resp, err := p.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := s.plain.Load() - before; got != 1 {
		t.Errorf("got %d requests by plain HTTP, want 1", got)
	}
	if busy := (*p.servers.Load())[0].busy.Load(); busy > 1 { // a check may be under way
		t.Errorf("got %d requests under way, want none", busy)
	}
}

// TestALostCallIsRepeatedOnce kills the connection while requests are under way. A reading
// is sent again, over plain HTTP; a change is not.
func TestALostCallIsRepeatedOnce(t *testing.T) {
	for _, c := range []struct {
		method string
		lost   bool
	}{{"GET", false}, {"POST", true}} {
		t.Run(c.method, func(t *testing.T) {
			begun, calls := make(chan struct{}), atomic.Int64{}
			s := startCalls(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/once" && calls.Add(1) == 1 {
					close(begun)
					<-r.Context().Done()
				}
			})
			p := newCallingPool(t, s.url)
			awaitCalls(t, p, 1)
			go func() {
				<-begun
				(<-s.conns).Close()
			}()
			_, _, err := ask(t, p, c.method, "/once", "")
			if lost := err != nil; lost != c.lost {
				t.Errorf("got %v, want an error: %t", err, c.lost)
			}
			want := int64(2)
			if c.lost {
				want = 1
			}
			if calls.Load() != want {
				t.Errorf("got %d calls of the handler, want %d", calls.Load(), want)
			}
		})
	}
}

// TestADrainLosesNoRequest shuts the calls of one of two servers down while changes are
// sent, several at a time.
func TestADrainLosesNoRequest(t *testing.T) {
	const rounds, senders, each = 20, 8, 50
	for range rounds {
		var done atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				done.Add(1)
			}
			_, _ = io.Copy(w, r.Body)
		}
		stable, first := startCalls(t, handler), startCalls(t, handler)
		p := newCallingPool(t, stable.url, first.url)
		awaitCalls(t, p, 2)
		drained := make(chan error, 1)
		var sending sync.WaitGroup
		for sender := range senders {
			sending.Go(func() {
				for i := range each {
					if sender == 0 && i == each/2 {
						go func() { drained <- first.Shutdown(context.Background()) }()
					}
					text := strings.Repeat("x", i%100+1)
					if _, got, err := ask(t, p, "POST", "/", text); err != nil || got != text {
						t.Errorf("request %d: got %d bytes, %v; want %d", i, len(got), err, len(text))
					}
				}
			})
		}
		sending.Wait()
		if err := <-drained; err != nil {
			t.Errorf("shutdown: got %v, want nil", err)
		}
		if got := done.Load(); got != senders*each {
			t.Errorf("got %d changes, want %d", got, senders*each)
		}
	}
}

// TestABodyThatFailsEndsItsRequest sends bodies that end too early.
func TestABodyThatFailsEndsItsRequest(t *testing.T) {
	s := startCalls(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	p := newPool(t, s.url)
	for range 2 { // on a new connection, and on another one
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://service/", io.NopCloser(strings.NewReader("12")))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 3
		if resp, err := p.RoundTrip(r); err == nil {
			resp.Body.Close()
			t.Errorf("got the answer %d, want an error", resp.StatusCode)
		}
	}
}
