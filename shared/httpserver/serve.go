package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxHeaderBytes = 32 << 10
	drainTimeout   = 15 * time.Second
	maxStreams     = 100 // of one connection; RFC 9113, section 6.5.2, advises no fewer
)

// timeouts limit how long a server waits for a client.
type timeouts struct {
	header time.Duration // time to receive the header of a request, and for a TLS handshake
	read   time.Duration // time to receive a whole request
	write  time.Duration // time to send the answer, from the end of the header on
	idle   time.Duration // time between two requests
}

var defaultTimeouts = timeouts{
	header: 5 * time.Second, read: 30 * time.Second, write: 60 * time.Second, idle: 2 * time.Minute,
}

// ServeOptions configure Serve. The zero value is plain HTTP without a drain
// delay.
type ServeOptions struct {
	// DrainDelay is the time for which the server still accepts requests after
	// its context is done. In this time /readyz answers 503 and each answer closes
	// its connection, so that clients and load balancers use other servers.
	DrainDelay time.Duration
	TLS        *tls.Config // nil for plain HTTP
	// Drain is called when the server takes no more requests. It ends requests that would otherwise go on. Drain is nil
	// if there are no such requests.
	Drain    func()
	Refusals http.Header // of a refusal that the server itself sends before it calls the handler; may be nil
}

// Serve answers requests on listener until ctx is done and the drain delay is
// over. Then it refuses new connections, waits up to 15 s for requests under way
// and returns nil. It closes the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, o ServeOptions) error {
	return serve(ctx, listener, handler, log, o, defaultTimeouts)
}

func serve(
	ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, o ServeOptions, t timeouts,
) error {
	draining := &drainHandler{next: handler}
	server := &http.Server{
		Handler:           ending(lingering(draining)),
		TLSConfig:         o.TLS.Clone(), // net/http changes it; nil stays nil
		ReadHeaderTimeout: t.header,
		ReadTimeout:       t.read,
		WriteTimeout:      t.write,
		IdleTimeout:       t.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if o.TLS != nil {
		// If the head of an HTTP/2 request is too large, net/http answers in HTML, without our headers. So net/http
		// gets a higher limit, and the handler checks the size of the head against our limit.
		server.MaxHeaderBytes += 64 << 10
	}
	tellPhases(server, o.Refusals)
	listener = socketListener{listener}
	if o.TLS != nil {
		listener = newTLSListener(listener, o.TLS, t.header, log, o.Refusals)
	}
	listener = jsonListener{listener, o.Refusals}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	draining.begun.Store(true)
	if o.DrainDelay > 0 {
		log.Info("draining", "addr", listener.Addr().String(), "drain_delay", o.DrainDelay.String())
		select {
		case err := <-failed:
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		case <-time.After(o.DrainDelay):
		}
	}
	if o.Drain != nil {
		o.Drain()
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("drain %s: %w", listener.Addr(), errors.Join(err, server.Close()))
	}
	return nil
}

// drainHandler answers /readyz with 503 and closes connections once the drain
// has begun.
type drainHandler struct {
	next  http.Handler
	begun atomic.Bool
}

func (d *drainHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.begun.Load() {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/readyz" {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":"ending"}`+"\n") // the client may have left
			return
		}
	}
	d.next.ServeHTTP(w, r)
}

// readiness logs when a service stops being ready, and when it is ready again.
type readiness struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time // when the service stopped being ready; zero while it is ready
	times int       // number of failed checks since then
}

// note records the result of a check. It ignores an error if the caller has left, because the caller's leaving may
// have caused the error.
func (r *readiness) note(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch ready := r.since.IsZero(); {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
	case err != nil:
		if r.times++; ready {
			r.since = time.Now()
			r.log.Warn("not ready", "error", err)
		}
	case !ready:
		r.log.Info("ready again", "times", r.times, "seconds", time.Since(r.since).Seconds())
		r.since, r.times = time.Time{}, 0
	}
}

// Scheme returns the scheme of addresses at a listener with this certificate.
func (c Certificate) Scheme() string {
	if c.Cert != "" {
		return "https"
	}
	return "http"
}

// OwnURL returns the URL at which programs on the same machine reach a listener. It returns "" for an address that is
// not a host and a port, and for an address with a zone.
func OwnURL(scheme, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	switch own, err := netip.ParseAddr(host); {
	case host == "" || err == nil && own.IsUnspecified():
		host = "127.0.0.1"
	case own.Zone() != "":
		return ""
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// socketListener keeps the kernel's memory for connections small. It limits unsent bytes,
// and drops them when a client is cut off. It ends connections whose peer has vanished.
type socketListener struct{ net.Listener }

func (l socketListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, err
	}
	tune(tcp)
	return socket{tcp}, nil
}

// socket is a connection. Its Close resets the connection if the client was too slow.
type socket struct{ *net.TCPConn }

// Write writes to the connection. If the client was too slow, a later Close resets the connection. Otherwise the
// kernel would keep the bytes that the client has not read.
func (s socket) Write(p []byte) (int, error) {
	n, err := s.TCPConn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.SetLinger(0) // fails if the connection is gone
	}
	return n, err
}
