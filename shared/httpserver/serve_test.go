package httpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"asset-registry/shared/probe"
	"asset-registry/shared/testing/expect"
)

// serveFor serves until the test ends. It returns the address, and a function that
// ends the server earlier.
func serveFor(t testing.TB, handler http.Handler, how ServeOptions, p timeouts) (addr string, end func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, handler, slog.New(slog.DiscardHandler), how, p) }()
	t.Cleanup(func() {
		cancel()
		expect.Try(t, <-served)
	})
	return listener.Addr().String(), cancel
}

func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	expect.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestSlowClientsAreShed checks that no slow client keeps its connection.
func TestSlowClientsAreShed(t *testing.T) {
	short := timeouts{header: time.Second, read: 1500 * time.Millisecond, write: 2 * time.Second, idle: time.Second}
	var cut atomic.Int64
	large := make([]byte, 32<<20) // more than the buffers of a socket hold
	addr, _ := serveFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			cut.Add(1)
			return
		}
		if _, err := w.Write(large); err != nil {
			cut.Add(1)
		}
	}), ServeOptions{}, short)
	const each = 5
	for range each {
		for _, slow := range []string{
			"GET / HTTP/1.1\r\nHo", // never ends its header
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab", // never ends its body
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",                         // never reads the answer
		} {
			io.WriteString(connect(t, addr), slow)
		}
	}
	conn := connect(t, addr)
	io.WriteString(conn, "GET / HTTP/1.1\r\nHo")
	if text, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("header without an end: got %q, %v; want a closed or reset connection", text, err)
	}
	for cut.Load() < 2*each {
		time.Sleep(time.Millisecond)
	}
}

// TestSlowHandshakesAreShed checks that a TLS handshake ends at its timeout, or
// when the server ends.
func TestSlowHandshakesAreShed(t *testing.T) {
	config, _ := withTLS(t)
	short, long := defaultTimeouts, defaultTimeouts
	short.header, long.header = 300*time.Millisecond, time.Hour
	for _, c := range []struct {
		name, sent string
		p          timeouts
		ended      bool
	}{
		{"a timeout without a byte", "", short, false},
		{"a timeout within a record", "\x16\x03\x01", short, false},
		{"the server ends before a byte", "", long, true},
		{"the server ends within a record", "\x16\x03\x01", long, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, end := serveFor(t, http.NotFoundHandler(), ServeOptions{TLS: config}, c.p)
			conn := connect(t, addr)
			io.WriteString(conn, c.sent)
			if c.ended {
				end()
			}
			if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v, want a closed or reset connection", err)
			}
		})
	}
}

func TestAServerThatEndsSaysSoBefore(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	addr, end := serveFor(t, served, ServeOptions{DrainDelay: time.Second}, defaultTimeouts)
	ask := func(path string) (status int, last bool) {
		resp, err := http.Get("http://" + addr + path)
		expect.OK(t, err)
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Close
	}
	if status, last := ask("/readyz"); status != 200 || last {
		t.Errorf("before the end: got %d, last answer %t; want 200, false", status, last)
	}
	end()
	for {
		if status, last := ask("/readyz"); status == 503 && last {
			break
		}
	}
	if status, last := ask("/"); status != 200 || !last {
		t.Errorf("during the drain: got %d, last answer %t; want 200, true", status, last)
	}
}

func TestHealthIsReadiness(t *testing.T) {
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	addr, end := serveFor(t, empty, ServeOptions{DrainDelay: 500 * time.Millisecond}, defaultTimeouts)
	url := "http://" + addr + "/readyz"
	expect.Err(t, probe.Ready(t.Context(), url), nil, "a running server")
	end()
	for probe.Ready(t.Context(), url) == nil {
		time.Sleep(time.Millisecond)
	}
	expect.ErrorIf(t, probe.Ready(t.Context(), "http://127.0.0.1:1/readyz") == nil, "no server: got nil, want an error")
}
