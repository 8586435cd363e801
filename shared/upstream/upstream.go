// Package upstream sends requests from one service to another over HTTP/1.1.
//
// A Pool is an http.RoundTripper for the servers of one service. Any server can
// answer any request. The pool prefers servers that are ready and skips those
// that fail.
//
// # Retries
//
// The pool retries a request in two cases:
//
//   - No connection could be made, so the request was not sent. The request
//     goes to the next server, whatever its method.
//   - The request was sent, got no answer, and is repeatable. Repeatable
//     requests are GET, HEAD and OPTIONS without a body (RFC 9110, 9.2.1), and
//     requests with an Idempotency-Key. As in net/http, an Idempotency-Key
//     without values makes a request repeatable, and is not sent.
//
// A sent request is retried once. The server may have crashed because of the
// request. So for 10 s the pool does not retry the same request again: otherwise
// it could crash one server after another. A budget allows one retry for ten
// requests, so retries cannot multiply an overload. Every other failure is
// returned, since the server may have carried the request out.
//
// # Health
//
// The pool requests /readyz from each server once a second. A server that is not ready gets requests only if no server
// is ready. So if the /readyz of a server fails for some seconds before the server stops, no request is lost. A server
// whose clock is wrong (Clocks) is not ready either.
//
// Each server has a circuit breaker. Five failures in a row open it, and a
// successful /readyz starts the count anew. An open breaker blocks all requests
// to the server for a second, and then lets one through as a trial.
package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// ErrNoServer is returned when the circuit breakers of all servers are open.
var ErrNoServer = errors.New("no server is available")

// Config describes the service that a pool calls. All fields but Clocks are required.
type Config struct {
	Name   string   // name of the service, for logs and metrics
	URLs   []string // addresses of the servers, at least one; a host name stands for all of its addresses
	Log    *slog.Logger
	Meter  metric.Meter
	Clocks *Clocks // learns the clocks of the servers, and says which are wrong; nil: none is
}

// Check returns an error if urls is empty, or if a URL is not made up of a scheme,
// http or https, and a host.
func Check(urls []string) error {
	if len(urls) == 0 {
		return errors.New("no address is given")
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !isBare(u) {
			return fmt.Errorf("the address %q must be http:// or https:// and a host", text)
		}
	}
	return nil
}

// isBare reports whether a URL has nothing but a scheme and a host.
func isBare(u *url.URL) bool {
	return (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

// Pool sends requests to the servers of one service. It is safe for concurrent
// use.
type Pool struct {
	name    string
	log     *slog.Logger
	clocks  *Clocks
	sources []source
	budget  retryBudget
	crashes *crashes
	turn    atomic.Uint64             // the method `pick` starts with this server
	servers atomic.Pointer[[]*server] // the slice is replaced, never changed

	stopWatch context.CancelFunc
	watching  sync.WaitGroup

	retries     metric.Int64Counter
	opened      metric.Int64Counter // counts how often a circuit breaker opened
	attributes  metric.MeasurementOption
	stopMetrics func()
}

// source is a configured URL.
type source struct {
	host, port string
	tls        *tls.Config // nil for http
}

// New returns a pool and starts to watch its servers. Close ends the watch.
func New(c Config) (*Pool, error) {
	if err := Check(c.URLs); err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", c.Name, err)
	}
	p := &Pool{
		name:       c.Name,
		log:        c.Log,
		clocks:     c.Clocks,
		crashes:    newCrashes(),
		attributes: metric.WithAttributeSet(attribute.NewSet(attribute.String("registry.upstream", c.Name))),
	}
	var servers []*server
	for _, text := range c.URLs {
		from, err := parseSource(text)
		if err != nil {
			return nil, err
		}
		p.sources = append(p.sources, from)
		servers = append(servers, newServer(p, from, from.host))
	}
	p.servers.Store(&servers)
	p.budget.tenths.Store(maxBudget)
	p.measure(c.Meter)
	ctx, stop := context.WithCancel(context.Background())
	p.stopWatch = stop
	p.watching.Go(func() { p.watch(ctx) })
	return p, nil
}

func (s source) scheme() string {
	if s.tls != nil {
		return "https"
	}
	return "http"
}

func parseSource(text string) (source, error) {
	u, err := url.Parse(text)
	if err != nil {
		return source{}, err
	}
	from := source{host: u.Hostname(), port: u.Port()}
	if u.Scheme == "https" {
		from.tls = &tls.Config{ServerName: from.host, MinVersion: tls.VersionTLS12}
	}
	from.port = cmp.Or(from.port, u.Scheme)
	return from, nil
}

// measure registers the pool's metrics until stopMetrics is called.
func (p *Pool) measure(meter metric.Meter) {
	p.retries = telemetry.Counter(meter, "registry.upstream.retries", "",
		"Requests to another service that were retried.")
	p.opened = telemetry.Counter(meter, "registry.upstream.opened", "",
		"Times that the circuit breaker of another service's server opened.")
	// The counters begin at 0. If a counter appeared only with its first event, Prometheus could not see that
	// event.
	p.retries.Add(context.Background(), 0, p.attributes)
	p.opened.Add(context.Background(), 0, p.attributes)
	observed := telemetry.Observe(meter)
	servers := observed.Gauge("registry.upstream.servers", "", "Servers of another service, by state: ready or unready.")
	state := func(name string) metric.MeasurementOption {
		return metric.WithAttributes(
			attribute.String("registry.upstream", p.name), attribute.String("registry.upstream.state", name))
	}
	p.stopMetrics = observed.Read(func(_ context.Context, o metric.Observer) {
		ready, all := p.Ready()
		o.ObserveInt64(servers, int64(ready), state("ready"))
		o.ObserveInt64(servers, int64(all-ready), state("unready"))
	})
}

// Name returns the name of the service.
func (p *Pool) Name() string { return p.name }

// Ready returns the number of servers that are ready, and of all servers. A
// server with an open circuit breaker is not ready.
func (p *Pool) Ready() (ready, all int) {
	servers := *p.servers.Load()
	for _, s := range servers {
		if s.ready.Load() && !s.breaker.isOpen(time.Now()) {
			ready++
		}
	}
	return ready, len(servers)
}

// Close ends the watch and closes all idle connections. A connection in use is
// closed when its answer ends.
func (p *Pool) Close() {
	p.stopWatch()
	p.watching.Wait()
	p.stopMetrics()
	for _, s := range *p.servers.Load() {
		s.transport.CloseIdleConnections()
	}
}
