// Package daemon runs a service as a process: it listens, logs, exports telemetry, answers
// requests until it is told to stop, and then finishes the requests under way.
package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"asset-registry/shared/closing"
	"asset-registry/shared/command"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/private"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/telemetry/export"
)

// Service is what a process runs. It answers requests until it is closed.
type Service interface {
	Handler() http.Handler
	Close() error
}

// Drainer is a Service with requests that go on until Drain is called. Drain may be called more than once.
type Drainer interface{ Drain() }

// Process configures the process of one service. The tags make its fields flags of a command.
type Process struct {
	Name        string        `kong:"-"`
	MetricsAddr string        `help:"Address on which /metrics answers Prometheus; by default none."`
	LogLevel    slog.Level    `default:"info" help:"Lowest level that is logged: debug, info, warn or error."`
	DrainDelay  time.Duration `default:"0s" help:"How long to serve after SIGTERM, while /readyz says 503."`
	HTTPServer  string        `name:"http-server" hidden:""` // has no effect; a release before had this setting

	Certificate httpserver.Certificate `kong:"-"` // the zero value serves plain HTTP
	Reloads     bool                   `kong:"-"` // SIGHUP replaces the service by a new one
	Refusals    http.Header            `kong:"-"` // see httpserver.ServeOptions.Refusals
	Places      []string               `kong:"-"` // the data that other users must not reach (package private)
	Budget      int64                  `kong:"-"` // bytes that the process may use; 0: only the system's limit

	warnings []string // about the settings
}

// Warn implements config.Warned. Observe logs the warnings.
func (p *Process) Warn(warnings []string) {
	if p.warnings = warnings; p.HTTPServer != "" {
		p.warnings = append(warnings, "--http-server has no effect, because net/http serves all requests: remove it")
	}
}

// Run runs a process with one service. It listens on addr, calls the function
// `start`, and answers until ctx is done. Then it finishes the requests under way
// and closes the service. The log goes to standard error as JSON.
func Run(
	ctx context.Context, addr string, p Process, start func(*slog.Logger, *telemetry.Telemetry) (Service, error),
) (err error) {
	listener, err := command.Listen("--addr", addr)
	if err != nil {
		return err
	}
	log := httpserver.NewLog(os.Stderr, p.LogLevel, p.Name)
	memory.RespectLimit(log, p.Budget)
	if err := private.Check(log, p.Places...); err != nil {
		return errors.Join(err, listener.Close())
	}
	config, err := p.Certificate.Config(log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	t, stop, err := p.Observe(ctx, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, stop()) }()
	httpserver.MeasureCertificate(t.Meter(), config)
	service, err := start(log, t.Telemetry)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	current := NewReplaceable(service)
	defer func() { err = errors.Join(err, current.Close()) }()
	if p.Reloads {
		defer current.onHangup(func() (Service, error) { return start(log, t.Telemetry) }, log)()
	}
	log.Info("listening", "addr", listener.Addr().String())
	options := p.Serving(config, current.Drain)
	options.Refusals = p.Refusals
	return httpserver.Serve(ctx, listener, current, log, options)
}

// Serving returns the options of a server of this process. tls is nil for plain HTTP; drain is nil if all
// requests end by themselves.
func (p Process) Serving(tls *tls.Config, drain func()) httpserver.ServeOptions {
	return httpserver.ServeOptions{DrainDelay: p.DrainDelay, TLS: tls, Drain: drain}
}

// Observe starts the process's telemetry. It answers Prometheus on MetricsAddr,
// if that is set, until the function `stop` is called.
func (p Process) Observe(ctx context.Context, log *slog.Logger) (t *export.Export, stop func() error, err error) {
	for _, warning := range p.warnings {
		log.Warn("a setting is doubtful", "warning", warning)
	}
	exported, err := export.Start(ctx, p.Name, log)
	if err != nil {
		return nil, nil, err
	}
	var opened closing.List
	opened.Do(exported.Close)
	if p.MetricsAddr == "" {
		return exported, opened.Close, nil
	}
	listener, err := command.Listen("--metrics-addr", p.MetricsAddr)
	if err != nil {
		return nil, nil, errors.Join(err, opened.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", exported.Metrics())
	opened.Serve(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return httpserver.Serve(ctx, listener, mux, log, httpserver.ServeOptions{})
	})
	return exported, opened.Close, nil
}
