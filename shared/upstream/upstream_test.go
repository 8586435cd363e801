package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/testing/expect"
)

func newPool(t *testing.T, urls ...string) *Pool {
	t.Helper()
	p, err := New(Config{Name: "test", URLs: urls, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{}})
	expect.OK(t, err)
	t.Cleanup(p.Close)
	return p
}

// testServer counts the requests that it gets, except for /readyz.
type testServer struct {
	*httptest.Server
	requests, connections atomic.Int64
	unready               atomic.Bool
}

func startServer(t *testing.T, handler http.HandlerFunc) *testServer {
	t.Helper()
	s := &testServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			if s.unready.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		s.requests.Add(1)
		handler(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// ask sends a request and returns its answer. The argument `header` has names of headers, which are sent without
// values.
func ask(t *testing.T, p *Pool, method, path, body string, header ...string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://service"+path, strings.NewReader(body))
	expect.OK(t, err)
	if body == "" {
		r.Body, r.GetBody = nil, nil
	}
	for _, name := range header {
		r.Header[name] = nil
	}
	resp, err := p.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

func TestAnswersOfEveryKindArriveOnOneConnection(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	s := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/plain":
			io.WriteString(w, "plain")
		case "/large":
			io.WriteString(w, large)
		case "/chunks":
			for range 3 {
				io.WriteString(w, "chunk")
				http.NewResponseController(w).Flush()
			}
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "body")
			w.Header().Set("X-Sum", "1")
		case "/early":
			w.Header().Set("Link", "</style>")
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, "late")
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/same":
			w.WriteHeader(http.StatusNotModified)
		case "/echo":
			io.Copy(w, r.Body)
		}
	})
	p := newPool(t, s.URL)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/plain", "", 200, "plain"},
		{"HEAD", "/plain", "", 200, ""},
		{"GET", "/large", "", 200, large},
		{"GET", "/chunks", "", 200, "chunkchunkchunk"},
		{"GET", "/trailer", "", 200, "body"},
		{"GET", "/early", "", 200, "late"},
		{"GET", "/nothing", "", 204, ""},
		{"GET", "/same", "", 304, ""},
		{"POST", "/echo", "question", 200, "question"},
		{"POST", "/echo", large, 200, large},
	} {
		resp, text, err := ask(t, p, c.method, c.path, c.body)
		if err != nil || resp.StatusCode != c.status || text != c.want {
			t.Fatalf("%s %s: got %+v, %d bytes, %v; want %d, %d bytes",
				c.method, c.path, resp, len(text), err, c.status, len(c.want))
		}
		if c.path == "/trailer" && resp.Trailer.Get("X-Sum") != "1" {
			t.Errorf("trailer: got %v, want X-Sum: 1", resp.Trailer)
		}
		if c.method == "HEAD" && resp.ContentLength != 5 {
			t.Errorf("HEAD: got Content-Length %d, want 5", resp.ContentLength)
		}
	}
	if n := s.connections.Load(); n > 2 { // a health check may use a connection of its own
		t.Errorf("got %d connections, want at most one, and one of checks", n)
	}
	if busy := (*p.servers.Load())[0].busy.Load(); busy > 1 {
		t.Errorf("got %d requests under way, want at most 1", busy)
	}
}

func TestAnAnswerThatIsNotReadCostsItsConnection(t *testing.T) {
	s := startServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 1<<20)) })
	p := newPool(t, s.URL)
	for range 2 {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://service/", nil)
		resp, err := p.RoundTrip(r)
		expect.OK(t, err)
		resp.Body.Close()
	}
	if _, text, err := ask(t, p, "GET", "/", ""); err != nil || len(text) != 1<<20 {
		t.Errorf("got %d bytes, %v; want %d bytes", len(text), err, 1<<20)
	}
}

func TestWhatMayBeRepeatedIs(t *testing.T) {
	for _, c := range []struct {
		name         string
		method, body string
		header       []string
		answered     bool
	}{
		{name: "a GET", method: "GET", answered: true},
		{name: "a POST", method: "POST", body: "question"},
		{
			name: "a POST with an Idempotency-Key", method: "POST", body: "question",
			header: []string{"Idempotency-Key"}, answered: true,
		},
		{name: "a DELETE", method: "DELETE"},
		{name: "a GET with a body", method: "GET", body: "question"},
		{name: "an unknown method", method: "BREW"},
		{
			name: "a PATCH with an Idempotency-Key", method: "PATCH", body: "question",
			header: []string{"Idempotency-Key"}, answered: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := startServer(t, drop)
			whole := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s %d", r.Method, text, len(r.Header["Idempotency-Key"]))
			})
			p := newPool(t, broken.URL, whole.URL)
			for range 2 { // either server may get the first request
				_, text, err := ask(t, p, c.method, "/", c.body, c.header...)
				if want := fmt.Sprintf("%s %s 0", c.method, c.body); err == nil && text != want {
					t.Errorf("got %q, want %q", text, want)
				}
				expect.ErrorIf(t, c.answered && err != nil, "got %v, want an answer", err)
			}
			if n := broken.requests.Load() + whole.requests.Load(); !c.answered && n != 2 {
				t.Errorf("two requests: got %d arrivals, want 2", n)
			}
		})
	}
}

func TestWhatWasNotSentGoesToAnother(t *testing.T) {
	gone := startServer(t, drop)
	gone.Close()
	there := startServer(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	p := newPool(t, gone.URL, there.URL)
	for i := range 20 {
		if _, text, err := ask(t, p, "POST", "/", fmt.Sprint(i)); err != nil || text != fmt.Sprint(i) {
			t.Errorf("got %q, %v; want %q", text, err, fmt.Sprint(i))
		}
	}
}

func TestRepeatsHaveABudget(t *testing.T) {
	s, other := startServer(t, drop), startServer(t, drop)
	p := newPool(t, s.URL, other.URL)
	const requests = 100
	for i := range requests {
		if _, _, err := ask(t, p, "GET", fmt.Sprint("/", i), ""); err == nil {
			t.Fatal("got an answer, want an error")
		}
		for _, s := range *p.servers.Load() { // clear the failures, so that the circuit breakers stay closed
			s.breaker.succeed()
		}
	}
	const most = requests + maxBudget/retryCost + requests/10 + 1
	if got := s.requests.Load() + other.requests.Load(); got > most {
		t.Errorf("%d requests: got %d arrivals, want at most %d", requests, got, most)
	}
}

func TestAServerThatIsNotReadyIsTheLastToBeAsked(t *testing.T) {
	empty := func(http.ResponseWriter, *http.Request) {}
	leaving, staying := startServer(t, empty), startServer(t, empty)
	leaving.unready.Store(true)
	p := newPool(t, leaving.URL, staying.URL)
	for ready := 2; ready != 1; ready, _ = p.Ready() {
		time.Sleep(time.Millisecond)
	}
	for range 10 {
		if _, _, err := ask(t, p, "POST", "/", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if leaving.requests.Load() != 0 || staying.requests.Load() != 10 {
		t.Errorf("got %d requests at the unready server and %d at the ready one, want 0 and 10",
			leaving.requests.Load(), staying.requests.Load())
	}
	staying.unready.Store(true)
	for ready := 1; ready != 0; ready, _ = p.Ready() {
		time.Sleep(time.Millisecond)
	}
	if _, _, err := ask(t, p, "POST", "/", "x"); err != nil {
		t.Errorf("no server is ready: got %v, want an answer", err)
	}
}

func TestAConnectionThatTheServerHasClosedFailsNoWrite(t *testing.T) {
	s := startServer(t, func(http.ResponseWriter, *http.Request) {})
	p := newPool(t, s.URL)
	for range 20 {
		for _, header := range [][]string{nil, {"Idempotency-Key"}} {
			if _, _, err := ask(t, p, "POST", "/", "x", header...); err != nil {
				t.Fatal(err)
			}
			s.CloseClientConnections()
		}
	}
}

func TestTheEndOfAContextEndsTheRequest(t *testing.T) {
	gone := make(chan struct{}, 2)
	s := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			io.WriteString(w, "begun")
			http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	p := newPool(t, s.URL)
	for _, path := range []string{"/", "/body"} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		r, _ := http.NewRequestWithContext(ctx, "GET", "http://service"+path, nil)
		resp, err := p.RoundTrip(r)
		if path == "/body" {
			expect.OK(t, err)
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		expect.ErrorIf(t, err == nil, "got a whole answer, want an error")
		<-gone
	}
	expect.Equal(t, (*p.servers.Load())[0].breaker.failures.Load(), 0, "failures of the server after its clients left")
}

// TestBrokenAnswers uses a server that answers with the bytes of each case. A
// broken or unfinished answer must be an error.
func TestBrokenAnswers(t *testing.T) {
	for _, c := range []struct {
		name         string
		answer, want string
		fails        bool
	}{
		{name: "no length, until the connection ends", answer: "HTTP/1.1 200 OK\r\n\r\nall of it", want: "all of it"},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nokmore", want: "ok"},
		{name: "shorter than its length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", fails: true},
		{name: "half a chunk", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", fails: true},
		{name: "no HTTP", answer: "hello\r\n\r\n", fails: true},
		{name: "half a header", answer: "HTTP/1.1 200 OK\r\nConte", fails: true},
		{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk", fails: true},
		{name: "another protocol", answer: "HTTP/1.1 101 Switching Protocols\r\n\r\n", fails: true},
		{name: "endless interim answers", answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20), fails: true},
		{name: "no answer", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			expect.OK(t, err)
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						io.WriteString(conn, c.answer)
					}
					conn.Close()
				}
			}()
			p := newPool(t, "http://"+listener.Addr().String())
			if _, text, err := ask(t, p, "POST", "/", "x"); (err != nil) != c.fails || !c.fails && text != c.want {
				t.Errorf("got %q, %v; want %q, error: %t", text, err, c.want, c.fails)
			}
		})
	}
}

func TestANameStandsForItsAddresses(t *testing.T) {
	s := startServer(t, func(http.ResponseWriter, *http.Request) {})
	p := newPool(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1))
	for (*p.servers.Load())[0].addr != s.Listener.Addr().String() {
		time.Sleep(time.Millisecond)
	}
	if _, _, err := ask(t, p, "POST", "/", "x"); err != nil || len(*p.servers.Load()) != 1 {
		t.Errorf("got %d servers, %v; want 1", len(*p.servers.Load()), err)
	}
}

func TestCheckOfAddresses(t *testing.T) {
	for _, text := range []string{"http://a:1", "https://a", "http://[::1]:8", "http://a/"} {
		expect.Err(t, Check([]string{text}), nil, "%q", text)
	}
	for _, text := range []string{
		"", "a:1", "ftp://a", "http://", "http://a/path", "http://a?q", "http://u@a", "http://a#f",
	} {
		expect.ErrorIf(t, Check([]string{text}) == nil, "%q: got no error, want one", text)
	}
	expect.ErrorIf(t, Check(nil) == nil, "no address: got no error, want one")
}

// TestABodyThatFailsEndsItsRequest sends bodies that end too early. Each request must return an error.
func TestABodyThatFailsEndsItsRequest(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	t.Cleanup(s.Close)
	p := newPool(t, s.URL)
	for range 2 { // each request needs a new connection, because the failed one is closed
		r := expect.Get(http.NewRequestWithContext(t.Context(), "POST", "http://service/",
			io.NopCloser(strings.NewReader("12"))))(t)
		r.ContentLength = 3
		if resp, err := p.RoundTrip(r); err == nil {
			resp.Body.Close()
			t.Errorf("got the answer %d, want an error", resp.StatusCode)
		}
	}
}
