// Package upstream is how one service calls another over the network: a
// transport to a few equal servers that picks one that is well, and leaves out
// one that is not.
//
// # What is repeated
//
// A request that has not been sent, because no connection could be made, goes
// to the next server. One that was sent and not answered is repeated if it may
// be: a safe method (RFC 9110, 9.2.1), or one with an Idempotency-Key, which is
// not sent if it is empty (as net/http has it). It is repeated once. The server
// may have died of it, so the same path and query is then not repeated for
// 10 s. A budget bounds all repeats, so that trouble is not multiplied.
// Everything else fails, since it may have been done.
//
// # Whom it leaves out
//
// Every server is asked for /readyz once a second. One that is not ready, since
// it is about to end or cannot do its work, gets requests only if no other is
// ready; so a service that says so for some seconds before it ends loses none.
// Five failures in a row, between two of these questions that it answers well,
// open a server's circuit breaker: nothing is sent for a second, then one
// request as a trial.
//
// # Why not net/http's transport
//
// Two goroutines for each of its connections hand over every request and every
// answer, which is a third of what the gateway costs. Here the goroutine that
// asks writes and reads. What is written and read is net/http's own business
// (Request.Write, ReadResponse).
package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ErrNoServer is returned when no server is there to be asked: all have failed
// a moment ago.
var ErrNoServer = errors.New("no server is there to be asked")

// Config tells whom a pool calls.
type Config struct {
	Name  string   // of the service, in logs and metrics
	URLs  []string // of its servers, at least one; a name that has several addresses stands for all of them
	Log   *slog.Logger
	Meter metric.Meter
}

// Check reports whether urls name the servers of one service: each a scheme,
// http or https, and a host, and nothing else.
func Check(urls []string) error {
	if len(urls) == 0 {
		return errors.New("there is no address")
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return fmt.Errorf("the address %q must be http:// or https:// and a host", text)
		}
	}
	return nil
}

// Pool is a transport to the servers of one service; it is safe for concurrent use.
type Pool struct {
	name    string
	log     *slog.Logger
	sources []source
	budget  budget
	deaths  *deaths
	turn    atomic.Uint64 // of whom to ask first among equals
	stop    context.CancelFunc
	silence func() error // of the metrics
	done    sync.WaitGroup
	servers atomic.Pointer[[]*server] // replaced, never changed
	retries metric.Int64Counter
	opened  metric.Int64Counter
	of      metric.MeasurementOption
}

// source is an address that a pool was given.
type source struct {
	host, port string
	tls        *tls.Config
}

// New returns a pool that watches its servers until it is closed.
func New(c Config) (*Pool, error) {
	if err := Check(c.URLs); err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", c.Name, err)
	}
	p := &Pool{name: c.Name, log: c.Log, deaths: newDeaths(), of: metric.WithAttributeSet(attribute.NewSet(attribute.String("registry.upstream", c.Name)))}
	var servers []*server
	for _, text := range c.URLs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		from := source{host: u.Hostname(), port: u.Port()}
		if u.Scheme == "https" {
			from.tls = &tls.Config{ServerName: from.host, MinVersion: tls.VersionTLS12}
		}
		if from.port == "" {
			from.port = u.Scheme
		}
		p.sources = append(p.sources, from)
		servers = append(servers, newServer(p, from, from.host))
	}
	p.servers.Store(&servers)
	p.budget.tenths.Store(maxBudget)
	if err := p.measure(c.Meter); err != nil {
		return nil, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Go(func() { p.watch(ctx) })
	return p, nil
}

func (p *Pool) measure(meter metric.Meter) (err error) {
	if p.retries, err = meter.Int64Counter("registry.upstream.retries", metric.WithDescription("Requests to another service that were sent again.")); err != nil {
		return err
	}
	if p.opened, err = meter.Int64Counter("registry.upstream.opened", metric.WithDescription("Times that a server of another service was left out after failures in a row.")); err != nil {
		return err
	}
	p.retries.Add(context.Background(), 0, p.of) // a counter that begins at its first event hides that one
	p.opened.Add(context.Background(), 0, p.of)
	servers, err := meter.Int64ObservableGauge("registry.upstream.servers", metric.WithDescription("Servers of another service, by what they are good for."))
	if err != nil {
		return err
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		ready, all := p.Ready()
		for state, n := range map[string]int{"ready": ready, "unready": all - ready} {
			o.ObserveInt64(servers, int64(n), metric.WithAttributes(attribute.String("registry.upstream", p.name), attribute.String("registry.upstream.state", state)))
		}
		return nil
	}, servers)
	if err != nil {
		return err
	}
	p.silence = registration.Unregister
	return nil
}

// Name returns the service's name.
func (p *Pool) Name() string { return p.name }

// Ready returns how many servers there are, and how many of them are ready.
func (p *Pool) Ready() (ready, all int) {
	servers := *p.servers.Load()
	for _, s := range servers {
		if s.ready.Load() && !s.breaker.isOpen(time.Now()) {
			ready++
		}
	}
	return ready, len(servers)
}

// Close ends the watch and frees the connections that nobody uses.
func (p *Pool) Close() {
	p.stop()
	p.done.Wait()
	_ = p.silence() // fails for nothing that is registered
	for _, s := range *p.servers.Load() {
		s.retire()
	}
}

// RoundTrip sends a request to one of the servers, whatever host its URL names.
// The connection is free again when the answer's body was read to its end or
// closed. It returns ErrNoServer, the context's error, or why the last server
// that was tried did not answer.
func (p *Pool) RoundTrip(r *http.Request) (*http.Response, error) {
	p.budget.earn()
	may, body := repeatable(r), r.Body
	var tried []*server
	var failure error
	var again *server // whose old connection was closed
	sure := !may || body != nil && body != http.NoBody
	repeated := false
	for {
		s := cmp.Or(p.pick(tried), again)
		if s == nil {
			closeBody(r)
			if failure == nil {
				failure = fmt.Errorf("%s: %w", p.name, ErrNoServer)
			}
			return nil, failure
		}
		resp, sent, err := s.exchange(r, body, sure || repeated)
		s.judge(r.Context(), err)
		if err == nil {
			return resp, nil
		}
		failure = fmt.Errorf("%s at %s: %w", p.name, s.addr, err)
		if r.Context().Err() != nil || sent != notSent && (repeated || !p.mayRepeat(r, may, sent)) {
			closeBody(r)
			return nil, failure
		}
		if sent != notSent {
			repeated = true
			if r.GetBody != nil {
				if body, err = r.GetBody(); err != nil {
					return nil, failure
				}
			}
		}
		p.retries.Add(r.Context(), 1, p.of)
		tried, again = append(tried, s), nil
		if sent == onOldConnection {
			again = s
		}
	}
}

// mayRepeat reports whether a request that was sent and not answered may be
// sent again. On an old connection that is free of charge: the server may have
// closed it before.
func (p *Pool) mayRepeat(r *http.Request, may bool, sent sent) bool {
	if !may || !p.deaths.mayRepeat(r, time.Now()) {
		return false
	}
	return sent == onOldConnection || p.budget.spend()
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close() // what it returns is of no use to whoever sends
	}
}

// repeatable tells whether a request may be sent again when nobody knows
// whether it was done.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return r.Body == nil || r.Body == http.NoBody
	}
	_, marked := r.Header["Idempotency-Key"]
	return marked && r.GetBody != nil
}

// pick returns the best server that was not tried yet, nil if there is none:
// one that is ready before one that is not, and then the one that has least to do.
func (p *Pool) pick(tried []*server) *server {
	servers := *p.servers.Load()
	now := time.Now()
	var best *server
	start := int(p.turn.Add(1) % uint64(len(servers)))
	for i := range servers {
		s := servers[(start+i)%len(servers)]
		if slices.Contains(tried, s) || s.breaker.isOpen(now) {
			continue
		}
		if best == nil || s.better(best) {
			best = s
		}
	}
	if best != nil && !best.breaker.admit(now) { // others have taken the trial
		return p.pick(append(tried, best))
	}
	return best
}

// budget bounds how many requests are sent again: a tenth of all, and a few
// more at the beginning.
type budget struct {
	tenths atomic.Int64 // of a retry, that may be spent
}

const (
	retryCost = 10  // tenths
	maxBudget = 100 // tenths
)

func (b *budget) earn() {
	if b.tenths.Load() < maxBudget {
		b.tenths.Add(1)
	}
}

func (b *budget) spend() bool {
	for {
		has := b.tenths.Load()
		if has < retryCost {
			return false
		}
		if b.tenths.CompareAndSwap(has, has-retryCost) {
			return true
		}
	}
}

// dial connects within a short time, so that a server that is gone costs little.
func dial(ctx context.Context, addr string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if secure != nil {
		return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", addr)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}
