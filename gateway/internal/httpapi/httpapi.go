// Package httpapi serves the public API of the gateway: its routes, and the steps that a
// request passes before the gateway answers or forwards it. Pipeline.go has their order.
package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/gateway/internal/answers"
	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/docspage"
	"asset-registry/gateway/internal/limits"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
)

// Config has the parts of an API. A field may be zero where its comment says so.
type Config struct {
	Assets   *proxy.Upstream
	Search   *proxy.Upstream // nil: there is no search service
	Files    *proxy.Upstream // nil: there is no file service
	Auth     *authapi.Client
	Keys     *apikey.Cache // in front of Auth
	Usage    *apikey.Usage
	Limits   *limits.Limits
	Policies ratelimit.Table      // those of Limits, for the documentation page
	Current  *concurrency.Limiter // bounds the requests under way
	Bodies   *memory.Budget       // memory of request bodies
	Answers  *answers.Cache       // keeps answers to readings of assets; nil: none are kept
	Secrets  keyring.Ring

	Origin         string             // address of the registry that a mirror copies; empty: this is no mirror
	ServerID       string             // value of the cookie SERVER_ID
	BaseURL        string             // start of every link in answers; empty: the address of the client's request
	TrustedProxies clientaddr.Proxies // networks whose X-Forwarded-Proto and -Host count without BaseURL
	MaxBody        int64              // limit of a request body in bytes
	Memory         int64              // bytes that the process may use; requests get parts of it
	Timeout        time.Duration      // limit of a request
	Settings       Settings
	Log            *slog.Logger
	Meter          metric.Meter
}

// API is the public API. It is safe for concurrent use.
type API struct {
	config   Config
	overrun  metric.Int64Counter // requests that Config.Current or health refused
	health   health
	room     *room // for request bodies
	docs     *docspage.Site
	feeds    feeds
	segments *concurrency.Shares // segments of the snapshot that are read
	uploads  *concurrency.Shares // uploads under way, by broker
	exports  *concurrency.Shares // exports under way
	cookie   []string            // Set-Cookie for a client without the cookie; all answers share it

	unregister []func() error // end the metrics
	ending     chan struct{}  // closed by Drain
	drain      func()
	running    sync.WaitGroup
}

// New returns the API. The settings must be valid and have their defaults.
func New(c Config) (a *API, err error) {
	a = &API{
		config:   c,
		segments: concurrency.NewShares(c.Settings.ClientSegments, c.Settings.MaxConcurrent),
		uploads:  concurrency.NewShares(brokerUploads, c.Settings.MaxConcurrent),
		exports:  concurrency.NewShares(1, exportAtOnce),
		health:   health{current: concurrency.New(maxHealth)},
		room:     newRoom(c.Bodies, c.MaxBody, c.Settings.MaxConcurrent),
		cookie:   []string{serverCookie(c.ServerID)},
		ending:   make(chan struct{}),
	}
	a.drain = sync.OnceFunc(func() { close(a.ending) })
	if a.docs, err = docspage.New(a.docsOptions()); err != nil {
		return nil, err
	}
	a.overrun, err = c.Meter.Int64Counter("registry.gateway.crowded", metric.WithUnit("{request}"),
		metric.WithDescription("Requests refused because too many were under way."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	a.overrun.Add(context.Background(), 0) // without a zero first, a rate misses the first event
	return a, a.openFeeds()
}

// isMirror tells whether the gateway is one of a mirror, which has no keys and takes no writes.
func (a *API) isMirror() bool { return a.config.Origin != "" }

// Drain ends the streams and the long polls.
func (a *API) Drain() { a.drain() }

// Close ends the streams and the metrics. The caller must not serve requests any more.
func (a *API) Close() []error {
	a.drain()
	a.running.Wait()
	a.feeds.hubs.Close()
	var faults []error
	for _, unregister := range a.unregister {
		faults = append(faults, unregister())
	}
	return faults
}
