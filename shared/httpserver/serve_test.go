package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/fault"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/telemetry"
)

// serveFor serves until the test ends, and returns the address, and how to end before.
func serveFor(t *testing.T, handler http.Handler, how ServeOptions, p timeouts) (addr string, end func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, handler, slog.New(slog.DiscardHandler), how, p) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), cancel
}

func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestRefusalsBeforeAnyHandlerAreInJSON(t *testing.T) {
	config, pool := withTLS(t)
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	plain, _ := serveFor(t, served, ServeOptions{}, usual)
	secure, _ := serveFor(t, served, ServeOptions{TLS: config}, usual)
	dials := map[string]func() (net.Conn, error){
		"plain":    func() (net.Conn, error) { return net.Dial("tcp", plain) },
		"with TLS": func() (net.Conn, error) { return tls.Dial("tcp", secure, &tls.Config{RootCAs: pool}) },
	}
	for name, c := range map[string]struct {
		sent   string
		status int
		says   string
	}{
		"no HTTP":           {"hello\r\n\r\n", 400, "understood"},
		"no host":           {"GET / HTTP/1.1\r\n\r\n", 400, "understood"},
		"two hosts":         {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "understood"},
		"a header's name":   {"GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n", 400, "understood"},
		"large headers":     {"GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", maxHeaderBytes+8192) + "\r\n\r\n", 431, "bytes"},
		"a long path":       {"GET /" + strings.Repeat("x", maxHeaderBytes+8192) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431, "bytes"},
		"another encoding":  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "chunked"},
		"another wish":      {"POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\nx", 417, "100-continue"},
		"a version to come": {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "HTTP/1.1"},
		"two framings":      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "both"},
		"in another order":  {"POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-encoding:chunked\r\nA: b\r\ncontent-LENGTH: 0\r\n\r\n", 400, "both"},
		"with bare ends":    {"POST / HTTP/1.1\nHost: a\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\r\n\r\n", 400, "both"},
		"of a GET":          {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "both"},
		"of HTTP/1.0":       {"POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "both"},
	} {
		for way, dial := range dials {
			t.Run(name+"/"+way, func(t *testing.T) { refused(t, dial, c.sent, c.status, c.says) })
		}
	}
	t.Run("HTTP where there is TLS", func(t *testing.T) {
		refused(t, func() (net.Conn, error) { return net.Dial("tcp", secure) }, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "HTTPS")
	})
}

// refused checks that what is sent is answered with an error body.
func refused(t *testing.T, dial func() (net.Conn, error), sent string, status int, says string) {
	t.Helper()
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(conn, sent)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var body struct {
		Status string
		Errors []struct{ Location, Name, Description string }
	}
	if err != nil || json.Unmarshal(text, &body) != nil || body.Status != "error" || len(body.Errors) != 1 || !strings.Contains(body.Errors[0].Description, says) {
		t.Errorf("got %s, %v", text, err)
	}
	if resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
}

// TestSlowClientsAreShed: none of them holds a connection for longer than it may.
func TestSlowClientsAreShed(t *testing.T) {
	short := timeouts{header: time.Second, read: 1500 * time.Millisecond, write: 2 * time.Second, idle: time.Second}
	var cut atomic.Int64
	large := make([]byte, 32<<20) // more than sockets hold
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
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab", // nor its body
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",                         // does not read the answer
		} {
			io.WriteString(connect(t, addr), slow)
		}
	}
	conn := connect(t, addr)
	io.WriteString(conn, "GET / HTTP/1.1\r\nHo")
	if text, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a header without an end: %q, %v", text, err)
	}
	for cut.Load() < 2*each {
		time.Sleep(time.Millisecond)
	}
}

// TestSlowHandshakesAreShed: neither a client that says nothing, nor the
// server's own end, leaves one open.
func TestSlowHandshakesAreShed(t *testing.T) {
	config, _ := withTLS(t)
	short, long := usual, usual
	short.header, long.header = 300*time.Millisecond, time.Hour
	for name, c := range map[string]struct {
		sent  string
		p     timeouts
		ended bool
	}{
		"nothing is said":         {"", short, false},
		"a record is only begun":  {"\x16\x03\x01", short, false},
		"the server is to end":    {"", long, true},
		"it is, amid a handshake": {"\x16\x03\x01", long, true},
	} {
		t.Run(name, func(t *testing.T) {
			addr, end := serveFor(t, http.NotFoundHandler(), ServeOptions{TLS: config}, c.p)
			conn := connect(t, addr)
			io.WriteString(conn, c.sent)
			if c.ended {
				end()
			}
			if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
		})
	}
}

func TestAServerThatEndsSaysSoBefore(t *testing.T) {
	addr, end := serveFor(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") }), ServeOptions{DrainDelay: time.Second}, usual)
	ask := func(path string) (status int, last bool) {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Close
	}
	if status, last := ask("/readyz"); status != 200 || last {
		t.Errorf("got %d, %v", status, last)
	}
	end()
	for {
		if status, last := ask("/readyz"); status == 503 && last {
			break
		}
	}
	if status, last := ask("/"); status != 200 || !last {
		t.Errorf("a request is answered with %d, the last one of its connection: %v", status, last)
	}
}

// certify writes a certificate for 127.0.0.1 with a number.
func certify(t *testing.T, dir string, number int64) (Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := Certificate{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{c.Cert: {Type: "CERTIFICATE", Bytes: signed}, c.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(signed)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return c, pool
}

// withTLS returns what a server needs for TLS, and whom its clients trust.
func withTLS(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	c, pool := certify(t, t.TempDir(), 1)
	config, err := c.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return config, pool
}

func TestACertificateIsReadAnew(t *testing.T) {
	dir := t.TempDir()
	c, pool := certify(t, dir, 1)
	secure, err := c.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := serveFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !r.TLS.HandshakeComplete {
			t.Error("the handler does not see that there is TLS")
		}
		io.WriteString(w, r.Proto)
	}), ServeOptions{TLS: secure}, usual)
	ask := func(pool *x509.CertPool) (string, error) {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		resp, err := client.Get("https://" + addr)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return fmt.Sprintf("%s, certificate %d", text, resp.TLS.PeerCertificates[0].SerialNumber), err
	}
	if got, err := ask(pool); err != nil || got != "HTTP/2.0, certificate 1" {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := os.WriteFile(c.Cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lookEvery)
	if got, err := ask(pool); err != nil || got != "HTTP/2.0, certificate 1" {
		t.Fatalf("with a broken file: got %q, %v", got, err)
	}
	_, pool = certify(t, dir, 2)
	for {
		if got, err := ask(pool); err == nil && got == "HTTP/2.0, certificate 2" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	old := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}} // without HTTP/2
	defer old.CloseIdleConnections()
	resp, err := old.Get("https://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "HTTP/1.1" {
		t.Errorf("got %s, %v", text, err)
	}
	for _, wrong := range []Certificate{{Cert: c.Cert}, {Key: c.Key}, {Cert: "nowhere", Key: "nowhere"}} {
		if _, err := wrong.Config(slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v will do", wrong)
		}
	}
}

// numbered is a service that answers with its number until it is closed.
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
		ended <- Run(ctx, addr, Process{Name: "test", Reloads: true, LogLevel: slog.LevelError + 1}, func(*slog.Logger, *telemetry.Telemetry) (Service, error) {
			n := int(started.Add(1))
			if n > len(services) {
				return nil, errors.New("a bad configuration")
			}
			return services[n-1], nil
		})
	}()
	conn := awaitConn(t, addr)
	reader := bufio.NewReader(conn)
	ask := func() string { // all on one connection
		t.Helper()
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(text))
	}
	if got := ask(); got != "200 1" {
		t.Fatal(got)
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
		if got != "200 1" {
			t.Fatal(got)
		}
	}
	close(services[0].slow)
	if got := <-slow; got != "200 1" {
		t.Errorf("a request under way is answered %q", got)
	}
	for !services[0].closed.Load() {
		time.Sleep(time.Millisecond)
	}
	syscall.Kill(os.Getpid(), syscall.SIGHUP)
	for i := 0; i < 50 || started.Load() < 3; i++ {
		if got := ask(); got != "200 2" {
			t.Fatalf("with a bad configuration: %s", got)
		}
	}
	stop()
	if err := <-ended; err != nil || !services[1].closed.Load() {
		t.Errorf("ended with %v", err)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

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

// FuzzRefusal: whatever is written passes as it is, but for net/http's own refusals.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"))
	f.Add([]byte("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 417 Expectation Failed\r\n\r\n"))
	f.Fuzz(func(t *testing.T, written []byte) {
		near, far := net.Pipe()
		got := make(chan []byte)
		go func() {
			text, _ := io.ReadAll(far)
			got <- text
		}()
		if n, err := newJSONConn(near).Write(written); err != nil || n != len(written) {
			t.Fatalf("wrote %d of %d, %v", n, len(written), err)
		}
		near.Close()
		text := <-got
		if !bytes.Equal(text, written) && (written[9] < '4' || !bytes.Contains(text, []byte("\r\nContent-Type: application/json\r\n"))) {
			t.Fatalf("%q became %q", written, text)
		}
	})
}

func TestHealthIsReadiness(t *testing.T) {
	addr, end := serveFor(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}), ServeOptions{DrainDelay: 500 * time.Millisecond}, usual)
	url := "http://" + addr + "/readyz"
	if err := Health(t.Context(), url); err != nil {
		t.Error(err)
	}
	end()
	for Health(t.Context(), url) == nil {
		time.Sleep(time.Millisecond)
	}
	if Health(t.Context(), "http://127.0.0.1:1/readyz") == nil {
		t.Error("nobody is healthy")
	}
}

func TestACollectorThatIsAwayIsNoFault(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	told, stop, err := Process{Name: "service", MetricsAddr: "127.0.0.1:0"}.Observe(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, span := told.Tracer().Start(t.Context(), "x", trace.WithSpanKind(trace.SpanKindServer))
	span.End() // there is something to export
	if err := stop(); err != nil {
		t.Errorf("the process would end with %v", err)
	}
}

// TestABodyThatHasArrivedIsInTime: what comes after it may take longer, and the
// connection is as good as new.
func TestABodyThatHasArrivedIsInTime(t *testing.T) {
	short := usual
	short.read = 100 * time.Millisecond
	addr, _ := serveFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Error("the request was cancelled")
		case <-time.After(3 * short.read):
		}
	}), ServeOptions{}, short)
	conn := connect(t, addr)
	reader := bufio.NewReader(conn)
	for _, rest := range []string{"\r\n", "Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "\r\n"} {
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+rest)
		resp, err := http.ReadResponse(reader, nil)
		if err != nil || resp.StatusCode != 200 || resp.Close {
			t.Fatalf("answered %v, %v", resp, err)
		}
	}
}

// TestARefusedBodyIsTaken: a client that sends all before it reads is told why
// it was refused.
func TestARefusedBodyIsTaken(t *testing.T) {
	engine := newEngine(io.Discard, nil)
	refuse := func(c *gin.Context) error { return fault.New(fault.TooLarge, fault.Body, "data", "no") }
	engine.POST("/unread", Handle(refuse))
	engine.POST("/begun", Handle(func(c *gin.Context) error {
		if _, err := io.ReadFull(c.Request.Body, make([]byte, 9)); err != nil {
			return err
		}
		return refuse(c)
	}))
	addr, _ := serveFor(t, engine, ServeOptions{}, usual)
	const size = 10_000_000
	large := strings.Repeat(" ", size)
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, large)
	for name, c := range map[string]struct {
		path, header, body string
		goesOn             bool // with the connection
	}{
		"of a length":            {"/unread", fmt.Sprintf("Content-Length: %d", size), large, false},
		"in chunks":              {"/unread", "Transfer-Encoding: chunked", chunks, false},
		"in chunks, begun":       {"/begun", "Transfer-Encoding: chunked", chunks, false},
		"that was asked for":     {"/begun", "Expect: 100-continue\r\nTransfer-Encoding: chunked", chunks, false},
		"that is small":          {"/unread", "Content-Length: 5", "12345", true},
		"that breaks":            {"/unread", "Transfer-Encoding: chunked", "x\r\n", false},
		"that never comes":       {"/unread", fmt.Sprintf("Content-Length: %d", size), "", false},
		"that waits for a yes":   {"/unread", fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d", size), "", false},
		"that is much too large": {"/unread", fmt.Sprintf("Content-Length: %d", maxRest+1), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, addr)
			if _, err := io.WriteString(conn, "POST "+c.path+" HTTP/1.1\r\nHost: a\r\n"+c.header+"\r\n\r\n"+c.body); err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(conn)
			resp, err := http.ReadResponse(reader, nil)
			if err == nil && resp.StatusCode == http.StatusContinue {
				resp, err = http.ReadResponse(reader, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 413 || resp.Close == c.goesOn {
				t.Fatalf("answered %d with %v: %v", resp.StatusCode, resp.Header, err)
			}
			if !c.goesOn {
				if more, err := io.ReadAll(reader); len(more) > 0 || err != nil {
					t.Errorf("then came %q, %v", more, err)
				}
				return
			}
			io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
			if next, err := http.ReadResponse(reader, nil); err != nil || next.StatusCode != 200 {
				t.Errorf("the next request: %v, %v", next, err)
			}
		})
	}
}

// serveBothWays serves without TLS and with it, and returns how to connect.
func serveBothWays(t *testing.T, handler http.Handler, p timeouts) map[string]func() net.Conn {
	t.Helper()
	config, pool := withTLS(t)
	plain, _ := serveFor(t, handler, ServeOptions{}, p)
	secure, _ := serveFor(t, handler, ServeOptions{TLS: config}, p)
	return map[string]func() net.Conn{
		"plain": func() net.Conn { return connect(t, plain) },
		"with TLS": func() net.Conn {
			conn := tls.Client(connect(t, secure), &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
			t.Cleanup(func() { conn.Close() })
			return conn
		},
	}
}

// TestARefusalWaitsForNoBody: the server would wait an hour for each of these
// bodies, the client only for its answer.
func TestARefusalWaitsForNoBody(t *testing.T) {
	engine := newEngine(io.Discard, nil)
	engine.POST("/fault", Handle(func(*gin.Context) error { return fault.New(fault.Unauthorized, fault.Header, "Authorization", "no") }))
	engine.GET("/large", func(c *gin.Context) { c.String(http.StatusOK, strings.Repeat("x", 1<<20)) })
	endless := usual
	endless.read = time.Hour
	const next = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
	for way, dial := range serveBothWays(t, engine, endless) {
		for name, c := range map[string]struct {
			request string
			status  int
			then    string // is sent after the answer
			goesOn  bool   // there is a second answer
		}{
			"a route":                     {"POST /fault", 401, "", false},
			"no route":                    {"PATCH /nowhere", 404, "", false},
			"a method that has no body":   {"GET /fault", 403, "", false},
			"a reading":                   {"GET /livez", 200, "", false},
			"a large reading":             {"GET /large", 200, "", false},
			"the body comes late":         {"POST /fault", 401, strings.Repeat("x", 100) + next, true},
			"a request instead of a body": {"POST /fault", 401, next, false},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				conn := dial()
				conn.SetDeadline(time.Now().Add(time.Minute)) // so that the test ends, too
				io.WriteString(conn, c.request+" HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
				reader := bufio.NewReader(conn)
				resp, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != c.status {
					t.Fatalf("got %d, %v, want %d", resp.StatusCode, err, c.status)
				}
				io.WriteString(conn, c.then)
				second, err := http.ReadResponse(reader, nil)
				if goesOn := err == nil && second.StatusCode == http.StatusOK; goesOn != c.goesOn {
					t.Errorf("a second answer: got %v, %v, want one: %v", second, err, c.goesOn)
				}
			})
		}
	}
}

// TestOneFramingIsEnough sends requests that only look as if they had two, in
// pieces of each size.
func TestOneFramingIsEnough(t *testing.T) {
	addr, _ := serveFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }), ServeOptions{}, usual)
	const (
		length  = "POST / HTTP/1.1\r\nHost: a\r\nX-Content-Length: 9\r\nContent-Length: 32\r\n\r\n{\"Transfer-Encoding: chunked\":1}"
		chunked = "POST / HTTP/1.1\r\nHost: a\r\nA: Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n16\r\n{\"Content-Length: 3\":1\r\n1\r\n}\r\n0\r\n\r\n"
		both    = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	)
	sent := length + chunked + length + both + length
	for size := 1; size < len(sent); size += 7 {
		conn := connect(t, addr) // which delays no piece, as Go's are
		go func() {
			for rest := sent; rest != ""; rest = rest[min(size, len(rest)):] {
				if _, err := io.WriteString(conn, rest[:min(size, len(rest))]); err != nil {
					return // it is closed, as it must be
				}
			}
		}()
		var got []int
		var bodies []string
		for reader := bufio.NewReader(conn); ; {
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				break
			}
			body, _ := io.ReadAll(resp.Body)
			if got = append(got, resp.StatusCode); resp.Close {
				break
			}
			bodies = append(bodies, string(body))
		}
		want := []string{`{"Transfer-Encoding: chunked":1}`, `{"Content-Length: 3":1}`, `{"Transfer-Encoding: chunked":1}`}
		if !slices.Equal(got, []int{200, 200, 200, 400}) || !slices.Equal(bodies, want) {
			t.Fatalf("in pieces of %d: got %v and the bodies %q, want %q", size, got, bodies, want)
		}
	}
}

// FuzzFraming: what arrives is cut anywhere, and the same is found in it.
func FuzzFraming(f *testing.F) {
	f.Add([]byte("A: b\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 9)
	f.Add([]byte("Content-Length: 1\n\nTransfer-Encoding: chunked\n\n"), 1)
	f.Fuzz(func(t *testing.T, sent []byte, at int) {
		at = min(max(at, 0), len(sent))
		find := func(pieces ...[]byte) string {
			found := newJSONConn(nil)
			for _, piece := range pieces {
				found.framing.spoil(piece)
			}
			return string(bytes.Join(pieces, nil))
		}
		if whole, cut := find(bytes.Clone(sent)), find(bytes.Clone(sent[:at]), bytes.Clone(sent[at:])); whole != cut {
			t.Errorf("got %q of the whole and %q cut at %d", whole, cut, at)
		}
	})
}

func TestTheEndOfACertificateIsTold(t *testing.T) {
	dir, meter := t.TempDir(), metrictest.New()
	c, _ := certify(t, dir, 1)
	secure, err := c.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(MeasureCertificate(meter, nil), MeasureCertificate(meter, secure)); err != nil {
		t.Fatal(err)
	}
	got := time.Unix(int64(meter.Read(t)["registry.tls.expires"]), 0)
	if left := time.Until(got); left < 50*time.Minute || left > time.Hour {
		t.Errorf("the certificate is told to expire in %v, want an hour", left)
	}
}
