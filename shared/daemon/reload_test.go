package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

// numbered is a service that answers with its number. After Close it answers
// with status 418.
type numbered struct {
	number      int
	begun, slow chan struct{}
	closed      atomic.Bool
}

func newNumbered(number int) *numbered {
	return &numbered{number: number, begun: make(chan struct{}), slow: make(chan struct{})}
}

func (n *numbered) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(n.begun)
			<-n.slow
		}
		if n.closed.Load() {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, n.number)
	})
}

func (n *numbered) Close() error {
	n.closed.Store(true)
	return nil
}

func TestAServiceIsReplacedWithoutAPause(t *testing.T) {
	services := []*numbered{newNumbered(1), newNumbered(2)}
	var started atomic.Int64
	addr := freeAddr(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		process := Process{Name: "test", Reloads: true, LogLevel: slog.LevelError + 1}
		ended <- Run(ctx, addr, process, func(*slog.Logger, *telemetry.Telemetry) (Service, error) {
			n := int(started.Add(1))
			if n > len(services) {
				return nil, errors.New("a bad configuration")
			}
			return services[n-1], nil
		})
	}()
	conn := awaitConn(t, addr)
	reader := bufio.NewReader(conn)
	ask := func() string { // ask sends each request on the same connection
		t.Helper()
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(reader, nil)
		expect.OK(t, err)
		text, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(text))
	}
	if got := ask(); got != "200 1" {
		t.Fatalf("first service: got %q, want %q", got, "200 1")
	}
	slow := make(chan string)
	go func() {
		resp, err := http.Get("http://" + addr + "/slow")
		if err != nil {
			slow <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		slow <- fmt.Sprint(resp.StatusCode, " ", string(text))
	}()
	<-services[0].begun
	syscall.Kill(os.Getpid(), syscall.SIGHUP)
	for got := ask(); got != "200 2"; got = ask() {
		expect.FatalIf(t, got != "200 1", "during the reload: got %q, want an answer of either service", got)
	}
	close(services[0].slow)
	expect.Equal(t, <-slow, "200 1", "a request under way")
	for !services[0].closed.Load() {
		time.Sleep(time.Millisecond)
	}
	syscall.Kill(os.Getpid(), syscall.SIGHUP)
	for i := 0; i < 50 || started.Load() < 3; i++ {
		if got := ask(); got != "200 2" {
			t.Fatalf("with a bad configuration: got %q, want %q", got, "200 2")
		}
	}
	stop()
	if err := <-ended; err != nil || !services[1].closed.Load() {
		t.Errorf("Run: got %v, closed %t; want nil, true", err, services[1].closed.Load())
	}
}

// freeAddr returns an unused address.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// awaitConn connects as soon as a server listens.
func awaitConn(t *testing.T, addr string) net.Conn {
	t.Helper()
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		time.Sleep(time.Millisecond)
	}
}
