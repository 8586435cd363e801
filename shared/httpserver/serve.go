package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"asset-registry/shared/telemetry"
)

// The time-outs and limits of every listener.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	drainTimeout      = 15 * time.Second
)

// Serve answers on listener until ctx is done, then refuses new connections,
// waits up to 15 seconds for requests under way, and returns nil. It closes
// the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("drain %s: %w", listener.Addr(), errors.Join(err, server.Close()))
	}
	return nil
}

// Service is what a process runs: it answers requests until it is closed.
type Service interface {
	Handler() http.Handler
	Close() error
}

// Process is what the process of one service needs to know of itself; the tags
// make it flags.
type Process struct {
	Name        string     `kong:"-"`
	MetricsAddr string     `help:"Address to answer Prometheus on, at /metrics; by default none."`
	LogLevel    slog.Level `default:"info" help:"Least level that is logged: debug, info, warn or error."`
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
	t, stop, err := p.Observe(ctx, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, stop()) }()
	service, err := start(log, t)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	log.Info("listening", "addr", listener.Addr().String())
	return Serve(ctx, listener, service.Handler(), log)
}

// Observe starts the process's telemetry, and answers Prometheus until stop.
func (p Process) Observe(ctx context.Context, log *slog.Logger) (t *telemetry.Telemetry, stop func() error, err error) {
	t, err = telemetry.Start(ctx, p.Name, log)
	if err != nil || p.MetricsAddr == "" {
		return t, t.Close, err
	}
	listener, err := net.Listen("tcp", p.MetricsAddr)
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Metrics())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, mux, log) }()
	return t, func() error {
		cancel()
		return errors.Join(<-served, t.Close())
	}, nil
}
