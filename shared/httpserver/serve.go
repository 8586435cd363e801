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
	"os"
	"sync/atomic"
	"time"

	"asset-registry/shared/memory"
	"asset-registry/shared/telemetry"
)

// The limits of every listener.
const (
	maxHeaderBytes = 32 << 10
	drainTimeout   = 15 * time.Second
)

// timeouts is how long a listener waits for its clients.
type timeouts struct {
	header time.Duration // for the request's header
	read   time.Duration // for the whole request
	write  time.Duration // from there until the answer is taken
	idle   time.Duration // for another request
}

var usual = timeouts{header: 5 * time.Second, read: 30 * time.Second, write: 60 * time.Second, idle: 2 * time.Minute}

// ServeOptions says how a listener serves. The zero value is plain HTTP that ends at once.
type ServeOptions struct {
	// DrainDelay is how long a server that is to end still takes requests, and
	// says by /readyz and on each answer that it will end, so that whoever sends
	// requests here goes elsewhere before.
	DrainDelay time.Duration
	TLS        *tls.Config // nil: plain HTTP
}

// Serve answers on listener until ctx is done and the drain's delay is over,
// then refuses new connections, waits up to 15 seconds for requests under way,
// and returns nil. It closes the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, how ServeOptions) error {
	return serve(ctx, listener, handler, log, how, usual)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, o ServeOptions, p timeouts) error {
	ending := &ending{next: handler}
	server := &http.Server{
		Handler:           lingering(ending),
		TLSConfig:         o.TLS.Clone(), // net/http writes into it; nil stays nil
		ReadHeaderTimeout: p.header,
		ReadTimeout:       p.read,
		WriteTimeout:      p.write,
		IdleTimeout:       p.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	listener = sockets{listener}
	if o.TLS != nil {
		listener = newSecure(listener, o.TLS, p.header, log)
	} else {
		listener = inJSON{listener}
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	ending.begun.Store(true)
	if o.DrainDelay > 0 {
		log.Info("ending", "addr", listener.Addr().String(), "drain_delay", o.DrainDelay.String())
		select {
		case err := <-failed:
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		case <-time.After(o.DrainDelay):
		}
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("drain %s: %w", listener.Addr(), errors.Join(err, server.Close()))
	}
	return nil
}

// ending is a handler that says, once it is to end, that it will.
type ending struct {
	next  http.Handler
	begun atomic.Bool
}

func (e *ending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.begun.Load() {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/readyz" {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"status":"ending"}`+"\n") // whoever is gone does not miss it
			return
		}
	}
	e.next.ServeHTTP(w, r)
}

// Service is what a process runs: it answers requests until it is closed.
type Service interface {
	Handler() http.Handler
	Close() error
}

// Process is what the process of one service needs to know of itself; the tags
// make it flags.
type Process struct {
	Name        string        `kong:"-"`
	MetricsAddr string        `help:"Address to answer Prometheus on, at /metrics; by default none."`
	LogLevel    slog.Level    `default:"info" help:"Least level that is logged: debug, info, warn or error."`
	DrainDelay  time.Duration `default:"0s" help:"How long to go on after SIGTERM while /readyz says 503, for whoever sends requests here to go elsewhere. With two of every service and 3s, a restart loses no request."`

	Certificate Certificate `kong:"-"` // zero: plain HTTP
	Reloads     bool        `kong:"-"` // SIGHUP starts the service anew in place of itself
}

// Run is the life of a process with one service: it listens at addr, starts the
// service, answers until ctx is done, finishes what is under way and closes the
// service. The log goes to standard error.
func Run(ctx context.Context, addr string, p Process, start func(log *slog.Logger, t *telemetry.Telemetry) (Service, error)) (err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: p.LogLevel}))
	memory.RespectLimit(log)
	secure, err := p.Certificate.Config(log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	t, stop, err := p.Observe(ctx, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := MeasureCertificate(t.Meter(), secure); err != nil {
		return errors.Join(err, listener.Close())
	}
	service, err := start(log, t)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	current := newReplaceable(service)
	defer func() { err = errors.Join(err, current.close()) }()
	if p.Reloads {
		defer current.onHangup(func() (Service, error) { return start(log, t) }, log)()
	}
	log.Info("listening", "addr", listener.Addr().String())
	return serve(ctx, listener, current, log, ServeOptions{DrainDelay: p.DrainDelay, TLS: secure}, usual)
}

// Observe starts the process's telemetry, and answers Prometheus until stop.
func (p Process) Observe(ctx context.Context, log *slog.Logger) (t *telemetry.Telemetry, stop func() error, err error) {
	t, err = telemetry.Start(ctx, p.Name, log)
	if err != nil {
		return nil, nil, err
	}
	if p.MetricsAddr == "" {
		return t, func() error { t.Close(); return nil }, nil
	}
	listener, err := net.Listen("tcp", p.MetricsAddr)
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Metrics())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, mux, log, ServeOptions{}) }()
	return t, func() error {
		cancel()
		err := <-served
		t.Close()
		return err
	}, nil
}
