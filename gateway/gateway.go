// Package gateway is the edge of the registry: the one service that the public
// meets. It checks version, content type, API key and rate limits, and forwards
// what passes to the asset service in the name of who it found to be calling.
//
// The order of checks is that of contract section 7, which wants a missing
// asset told before a missing key or a wrong content type. The gateway keeps no
// assets, so when it is about to refuse a write for one of these two, and only
// then, it asks the asset service whether there is such an asset.
//
// # What the hot path costs
//
// A reading that is forwarded over the network (make bench-gateway) is four
// system calls, two reads and two writes, which are nearly half of the
// processor's time; net/http's server and gin are most of the rest. Ours is
// small beside that: a look at a key that is remembered and at the limits, about
// a microsecond each, no round trip but the one to the asset service, and no
// goroutine that hands the request to another one (package upstream). Measuring
// costs an attribute set that is made once for each kind of answer; tracing
// costs nothing where a request is not recorded, which is decided before any
// span is made.
//
// Readings are not answered from a cache here. One that is provably fresh would
// have to be confirmed by the asset service each time, which is the same round
// trip without the body; and the round trip is what costs.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/upstream"
)

// Config is all that the gateway needs to know. Fields that say so may be left zero.
type Config struct {
	AssetsURLs []string          // addresses of asset services that share a store
	Assets     http.Handler      // the asset service, in process, instead of AssetsURLs
	AuthURLs   []string          // addresses of auth services that share a store
	Auth       http.RoundTripper // how to reach it instead of at AuthURLs; nil: over the network
	Secrets    keyring.Ring      // sign identities; the same for all services

	ServerID       string        // given to clients as the cookie SERVER_ID; empty: made of the secret, if there is one
	BaseURL        string        // address that links start with; empty: as the client addressed us
	MaxBody        int64         // bytes of a request body; 0: 1 MiB
	Timeout        time.Duration // longest time for a request; 0: 10 s
	Memory         int64         // bytes that the process may use, of which requests get parts; 0: memory.Limit
	Manners        Manners
	KeyTTL         time.Duration      // how long a verified key is trusted; 0: 5 s
	Limits         Limits             // zero: none
	TrustedProxies clientaddr.Proxies // networks whose X-Forwarded-For counts; empty: none
	Log            *slog.Logger
	Telemetry      *telemetry.Telemetry // nil: none
	Now            func() time.Time     // nil: time.Now
}

const (
	defaultMaxBody = 1 << 20
	defaultCrowd   = 4000
	defaultTimeout = 10 * time.Second
	defaultKeyTTL  = 5 * time.Second
	readKeyShare   = 10 // part of a reading's time that its key may take: 1/10
	writeKeyShare  = 4  // the same of a write
)

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var faults []error
	if c.Assets == nil {
		faults = append(faults, checkService("asset service", c.AssetsURLs))
	} else if len(c.AssetsURLs) > 0 {
		faults = append(faults, errors.New("the asset service is in process or at an address, not both"))
	}
	if c.Auth == nil {
		faults = append(faults, checkService("auth service", c.AuthURLs))
	}
	if c.BaseURL != "" {
		faults = append(faults, checkURL("base URL", c.BaseURL))
	}
	if strings.Trim(c.ServerID, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != "" {
		faults = append(faults, errors.New("the server's id may have letters, digits, - and _"))
	}
	if err := c.Secrets.Check(); err != nil {
		faults = append(faults, fmt.Errorf("the registry's secret: %w", err))
	} else if len(c.Secrets) > 1 && c.ServerID == "" {
		faults = append(faults, fmt.Errorf("there are %d secrets, so the server's id must be set, to the one that clients have: it was %q if the first secret was there before, %q if the second was",
			len(c.Secrets), ServerIDOf(c.Secrets[0]), ServerIDOf(c.Secrets[1])))
	}
	if c.MaxBody < 0 || c.Timeout < 0 || c.KeyTTL < 0 || c.Memory < 0 {
		faults = append(faults, errors.New("the body limit, the time-out, the keys' time and the memory must not be negative"))
	}
	faults = append(faults, c.Limits.validate(cmp.Or(c.MaxBody, defaultMaxBody)), c.Manners.validate())
	if c.Log == nil {
		faults = append(faults, errors.New("the log is missing"))
	}
	return errors.Join(faults...)
}

func checkService(name string, urls []string) error {
	if err := upstream.Check(urls); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func checkURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("the %s, %q, must start with http:// or https:// and name a host", what, text)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Manners.MaxConcurrent == 0 {
		c.Manners.MaxConcurrent = defaultCrowd
	}
	if c.KeyTTL == 0 {
		c.KeyTTL = defaultKeyTTL
	}
	if c.Memory == 0 {
		c.Memory = memory.Limit()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Telemetry == nil {
		c.Telemetry = &telemetry.Telemetry{}
	}
	if c.ServerID == "" {
		c.ServerID = ServerIDOf(c.Secrets.Current())
	}
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	return c
}

// Server is a running gateway.
type Server struct {
	config   Config
	assets   *proxy.Upstream
	auth     *authapi.Client
	pools    []*upstream.Pool // of the services that are not in this process
	keys     *apikey.Cache    // in front of auth
	usage    *apikey.Usage
	limits   *ratelimit.Limiter
	inside   atomic.Int64   // requests under way
	bodies   *memory.Budget // of requests, being received and forwarded
	encoders *memory.Budget // of answers
	healthy  healthCheck
	crowded  metric.Int64Counter // requests that were too many at once
	decided  decisions           // of the limits
	shared   *ratelimit.Shared   // what limits count in, if that is Redis
	routes   gin.RoutesInfo
	handler  http.Handler

	silence func() error       // ends the metrics that are asked for
	stop    context.CancelFunc // of what runs beside the requests
	running sync.WaitGroup
}

// New returns a gateway that is ready to answer.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure gateway: %w", err)
	}
	c = c.withDefaults()
	signer, err := identity.NewSigner(c.Secrets, c.Now)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:   c,
		bodies:   memory.NewBudget(max(c.Memory/8, 2*c.MaxBody)),
		encoders: memory.NewBudget(c.Memory / 8),
		decided:  newDecisions(),
		silence:  func() error { return nil },
		stop:     func() {},
	}
	if s.assets, err = s.assetService(signer); err != nil {
		return nil, err
	}
	if s.auth, err = s.authService(signer); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.keys, s.usage = apikey.Cached(s.auth, c.KeyTTL, c.Now), apikey.NewUsage(s.auth, c.Log, c.Now)
	if err := s.measure(c.Telemetry.Meter()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	store, err := s.limitStore()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.limits, err = ratelimit.New(store, c.Limits.policies(), c.Now, c.Telemetry.Meter()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "gateway", Log: c.Log, LogLevel: slog.LevelInfo, Timeout: c.Timeout, TimeoutOf: s.timeoutOf, Ready: s.ready, Warnings: s.warnings, Telemetry: c.Telemetry, Edge: true,
	})
	s.route(engine)
	if s.handler, err = newEdge(engine, c, s.encoders); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { s.keys.Watch(ctx, s.auth, c.Log) })
	s.running.Go(func() { s.usage.Run(ctx) })
	return s, nil
}

// measure makes the gateway's own metrics.
func (s *Server) measure(meter metric.Meter) (err error) {
	if s.crowded, err = meter.Int64Counter("registry.gateway.crowded", metric.WithUnit("{request}"), metric.WithDescription("Requests that were refused because too many were under way.")); err != nil {
		return err
	}
	s.crowded.Add(context.Background(), 0) // a counter that begins at its first event hides that one
	keys, err := s.keys.Measure(meter)
	if err != nil {
		return err
	}
	s.silence = keys
	decided, err := s.decided.measure(meter)
	if err != nil {
		return err
	}
	s.silence = func() error { return errors.Join(keys(), decided()) }
	held, err := memory.Measure(meter, map[string]memory.Limiter{"bodies": s.bodies, "encoders": s.encoders})
	if err != nil {
		return err
	}
	s.silence = func() error { return errors.Join(keys(), decided(), held()) }
	return nil
}

func (s *Server) authService(signer *identity.Signer) (*authapi.Client, error) {
	if s.config.Auth != nil {
		return authapi.NewClient(s.config.Auth, signer, "gateway"), nil
	}
	pool, err := s.call("authsvc", s.config.AuthURLs)
	if err != nil {
		return nil, err
	}
	return authapi.NewClient(pool, signer, "gateway"), nil
}

// call returns the way to a service in other processes.
func (s *Server) call(name string, urls []string) (*upstream.Pool, error) {
	pool, err := upstream.New(upstream.Config{Name: name, URLs: urls, Log: s.config.Log, Meter: s.config.Telemetry.Meter()})
	if err != nil {
		return nil, err
	}
	s.pools = append(s.pools, pool)
	return pool, nil
}

func (s *Server) assetService(signer *identity.Signer) (*proxy.Upstream, error) {
	if s.config.Assets != nil {
		return proxy.Local(s.config.Assets, signer), nil
	}
	pool, err := s.call("assetsvc", s.config.AssetsURLs)
	if err != nil {
		return nil, err
	}
	return proxy.Remote(pool, signer), nil
}

// timeoutOf returns the longest time for a request by its route; 0: as others
// have.
func (s *Server) timeoutOf(c *gin.Context) time.Duration {
	switch {
	case c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead:
		return 0
	case isListing(c):
		return s.config.Manners.ListTimeout
	default:
		return s.config.Manners.ReadTimeout
	}
}

// warnings tells what operators should know of a gateway that is ready: it is
// when it runs, since what it can answer without those behind it, and that they
// are away, is better told by it than by whatever stands before it.
func (s *Server) warnings(context.Context) (told []string) {
	for _, pool := range s.pools {
		if ready, all := pool.Ready(); ready < all {
			told = append(told, fmt.Sprintf("of %d servers of %s, %d are ready", all, pool.Name(), ready))
		}
	}
	if s.shared != nil && s.shared.IsAway() {
		told = append(told, fmt.Sprintf("the limits' Redis does not answer; limits are in mode %s", s.config.Limits.Away))
	}
	return told
}

// Handler answers the public's requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Close frees what the gateway holds.
func (s *Server) Close() error {
	s.stop()
	s.running.Wait()
	for _, pool := range s.pools {
		pool.Close()
	}
	err := s.silence()
	if s.shared == nil {
		return err
	}
	return errors.Join(err, s.shared.Close())
}
