package httpserver

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestStdIsNetHTTPAlone takes over the connection of a simple request. With Std this must be a connection of
// net/http.
func TestStdIsNetHTTPAlone(t *testing.T) {
	secure, pool := withTLS(t)
	for _, c := range []struct {
		name   string
		config *tls.Config
		dial   func(addr string) (net.Conn, error)
	}{
		{"plain", nil, func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }},
		{"TLS", secure, func(addr string) (net.Conn, error) { return tls.Dial("tcp", addr, &tls.Config{RootCAs: pool}) }},
	} {
		taken := make(chan net.Conn, 1)
		take := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			expect.Try(t, err)
			taken <- conn
		})
		addr, _ := serveFor(t, take, ServeOptions{Std: true, TLS: c.config}, defaultTimeouts)
		conn, err := c.dial(addr)
		expect.OK(t, err)
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		served := <-taken
		defer served.Close()
		expect.FatalIf(t, jsonConnOf(served) == nil, "%s: got a %T, want the connection of net/http", c.name, served)
	}
}

// BenchmarkServe compares the two servers of HTTP/1.1. Each figure includes the cost of the clients, so the
// servers differ more than the figures do.
func BenchmarkServe(b *testing.B) {
	const clients, request = 16, "GET /assets/1 HTTP/1.1\r\nHost: registry.example\r\nAccept: application/json\r\n\r\n"
	text := make([]byte, 2<<10)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(text)
	})
	for _, c := range []struct {
		name string
		std  bool
	}{{"server=std", true}, {"server=lean", false}} {
		b.Run(c.name, func(b *testing.B) {
			addr, _ := serveFor(b, handler, ServeOptions{Std: c.std}, defaultTimeouts)
			b.ReportAllocs()
			before := cpuTime(b)
			var all sync.WaitGroup
			for range clients {
				all.Go(func() { expect.Try(b, ask(addr, request, len(text), b.N/clients+1)) })
			}
			all.Wait()
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// ask sends the same request several times on one connection. Each answer must have the given number of bytes
// after its head.
func ask(addr, request string, bytes, times int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	buffer := make([]byte, bytes+1<<10)
	for range times {
		if _, err := io.WriteString(conn, request); err != nil {
			return err
		}
		for got := 0; got < bytes; { // this also counts the head, which comes with the body and is much shorter
			n, err := conn.Read(buffer)
			if err != nil {
				return err
			}
			got += n
		}
	}
	return nil
}

// cpuTime returns the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Skipf("no processor time on %s: %v", runtime.GOOS, err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
