// Package gateway is the public entry of the registry. It checks the version,
// content type, API key and rate limits of every request, and forwards the
// request to the asset service with the identity of the caller.
//
// Package httpapi defines the order of the checks. The gateway stores no assets. So before it refuses a write
// for a missing key or a wrong content type, it asks the asset service whether the asset exists
// (docs/contract.md, "Order of checks").
//
// # Cost of a request
//
// A read that is forwarded over the network needs two writes and at least two reads. These system calls take nearly
// half of the processor time; net/http's server and gin take most of the rest (make bench-gateway). A cached key
// and the rate limits cost about a microsecond each. The request to the asset service is the only network round
// trip. The metric attributes of each
// kind of answer are made once. The gateway decides whether to trace a request before it makes any span. So tracing
// costs nothing for the other requests.
//
// If the asset service is in the same process, the gateway answers reads of assets from memory (package
// answers). None of these answers is stale.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/edge"
	"asset-registry/gateway/internal/httpapi"
	"asset-registry/gateway/internal/limits"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/shared/authapi"
	"asset-registry/shared/closing"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
	"asset-registry/shared/upstream"
)

// Server is a running gateway.
type Server struct {
	config  Config
	api     *httpapi.API
	assets  *proxy.Upstream
	search  *proxy.Upstream // nil: no search service
	files   *proxy.Upstream // nil: no file service
	auth    *authapi.Client
	pools   []*upstream.Pool // connections to the services in other processes
	clocks  *upstream.Clocks // of their servers
	keys    *apikey.Cache    // cache in front of auth
	usage   *apikey.Usage
	limits  *limits.Limits
	current *concurrency.Limiter // limits the number of concurrent requests
	bodies  *memory.Budget       // memory of request bodies
	handler http.Handler

	closers closing.List
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
		config:  c,
		clocks:  upstream.NewClocks(c.Now, c.Log),
		current: concurrency.New(c.Settings.MaxConcurrent),
		bodies:  memory.NewBudget(max(c.Memory/8, 4*c.MaxBody)), // large bodies may use 3/4 of it, so 3 of MaxBody fit
	}
	if err := s.open(signer); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if c.Mirror != nil { // a mirror has no keys
		return s, nil
	}
	ctx = context.WithoutCancel(ctx)
	s.closers.Go(ctx, func(ctx context.Context) { s.keys.Watch(ctx, s.auth, c.Log) })
	s.closers.Go(ctx, s.usage.Run)
	return s, nil
}

// open opens everything that the gateway needs to answer requests. Close closes it, also after an error of open.
func (s *Server) open(signer *identity.Signer) (err error) {
	c := s.config
	if s.assets, err = s.service("assetsvc", c.Assets, c.AssetsURLs, signer); err != nil {
		return err
	}
	if s.search, err = s.service("searchsvc", c.Search, c.SearchURLs, signer); err != nil {
		return err
	}
	if s.files, err = s.service("filesvc", c.Files, c.FilesURLs, signer); err != nil {
		return err
	}
	if s.files != nil {
		s.files = s.files.Patient()
	}
	if s.auth, err = s.authService(signer); err != nil {
		return err
	}
	s.keys, s.usage = apikey.Cached(s.auth, c.KeyTTL, c.Now, c.Memory/64), apikey.NewUsage(s.auth, c.Log, c.Now)
	options := limits.Options{Now: c.Now, Log: c.Log, Meter: c.Telemetry.Meter(), Memory: c.Memory}
	s.limits, err = limits.New(c.Limits, options)
	if err != nil {
		return err
	}
	s.closers.Add(s.limits.Close)
	if s.api, err = httpapi.New(s.apiConfig()); err != nil {
		return err
	}
	s.closers.Do(s.api.Close)
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "gateway", Log: c.Log, LogLevel: slog.LevelInfo, Timeout: c.Timeout, TimeoutOf: s.api.TimeoutOf,
		Ready: s.clocks.Ready(s.ready, nil), Warnings: s.clocks.Warnings(s.warnings), Telemetry: c.Telemetry, Edge: true,
		Facts: c.Mirror.facts,
	})
	s.api.Route(engine)
	encoders := memory.NewBudget(c.Memory / 8)
	var handler http.Handler = engine
	if c.Mirror != nil {
		handler = c.Mirror.aged(engine)
	}
	s.handler, err = edge.New(handler, edge.Config{
		TrustedProxies: c.TrustedProxies, CORSOrigins: c.Settings.CORSOrigins, Encoders: encoders, Places: c.Places,
		HSTS: c.Settings.HSTS, Secure: strings.HasPrefix(c.BaseURL, "https://"),
	})
	if err != nil {
		return err
	}
	s.measure(encoders)
	return nil
}

// apiConfig returns the configuration of the API.
func (s *Server) apiConfig() httpapi.Config {
	c := s.config
	return httpapi.Config{
		Assets: s.assets, Search: s.search, Files: s.files, Auth: s.auth, Keys: s.keys, Usage: s.usage, Limits: s.limits,
		Policies: c.Limits.Policies(), Current: s.current, Bodies: s.bodies, Answers: c.Answers,
		Secrets: c.Secrets, Places: c.Places, Origin: c.Mirror.origin(),
		ServerID: c.ServerID, BaseURL: c.BaseURL, OwnURL: c.OwnURL, TrustedProxies: c.TrustedProxies, MaxBody: c.MaxBody,
		Memory: c.Memory, Timeout: c.Timeout, Settings: c.Settings, Log: c.Log, Meter: c.Telemetry.Meter(),
	}
}

// measure registers the gateway's own metrics.
func (s *Server) measure(encoders *memory.Budget) {
	meter := s.config.Telemetry.Meter()
	if s.config.Mirror == nil {
		s.closers.Do(s.keys.Measure(meter))
	}
	if s.config.Answers != nil {
		s.closers.Do(s.config.Answers.Measure(meter))
	}
	s.closers.Do(memory.Measure(meter, map[string]memory.Limiter{"bodies": s.bodies, "encoders": encoders}))
}

// service returns a service that runs in this process or in others. It returns nil if the gateway has none.
func (s *Server) service(
	name string, local http.Handler, urls []string, signer *identity.Signer,
) (*proxy.Upstream, error) {
	if local != nil {
		return proxy.Local(local, signer), nil
	}
	if len(urls) == 0 {
		return nil, nil
	}
	pool, err := s.pool(name, urls)
	if err != nil {
		return nil, err
	}
	return proxy.Remote(pool, signer), nil
}

func (s *Server) authService(signer *identity.Signer) (*authapi.Client, error) {
	if s.config.Mirror != nil {
		return authapi.NewClient(httpserver.InProcess(http.NotFoundHandler()), signer, "gateway"), nil
	}
	if s.config.Auth != nil {
		return authapi.NewClient(s.config.Auth, signer, "gateway"), nil
	}
	pool, err := s.pool("authsvc", s.config.AuthURLs)
	if err != nil {
		return nil, err
	}
	return authapi.NewClient(pool, signer, "gateway"), nil
}

// pool opens connections to a service that runs in other processes. Close closes them.
func (s *Server) pool(name string, urls []string) (*upstream.Pool, error) {
	pool, err := upstream.New(upstream.Config{
		Name: name, URLs: urls, Log: s.config.Log, Meter: s.config.Telemetry.Meter(), Clocks: s.clocks,
	})
	if err != nil {
		return nil, err
	}
	s.pools = append(s.pools, pool)
	s.closers.Do(pool.Close)
	return pool, nil
}

// ready returns nil if the services in this process can store changes. A gateway whose services run in other processes
// is always ready, unless its clock is wrong (upstream.Clocks); the method `warnings` reports which services are down.
func (s *Server) ready(ctx context.Context) error {
	if s.config.Assets == nil {
		return nil
	}
	return s.api.Health(ctx)
}

// warnings lists the services that are down, and the warnings of the services in this process. The gateway stays
// ready when services are down, because its 503 has more information for a client than the 503 of a load
// balancer.
func (s *Server) warnings(ctx context.Context) (warnings []string) {
	if s.config.Warnings != nil {
		warnings = s.config.Warnings(ctx)
	}
	for _, pool := range s.pools {
		if ready, all := pool.Ready(); ready < all {
			warnings = append(warnings, fmt.Sprintf("of %d servers of %s, %d are ready", all, pool.Name(), ready))
		}
	}
	return append(warnings, s.limits.Warnings()...)
}

// Handler returns the handler of public requests.
func (s *Server) Handler() http.Handler { return s.handler }

// RefusalHeaders returns the headers for refusals that the HTTP server sends itself, before it calls the
// handler of a gateway (httpserver.ServeOptions).
func RefusalHeaders() http.Header { return edge.RefusalHeaders() }

// Drain ends the streams and the long polls.
func (s *Server) Drain() { s.api.Drain() }

// Close ends the streams and the background goroutines and closes all connections. The caller must have stopped
// serving requests.
func (s *Server) Close() error { return s.closers.Close() }

// Mirror configures the gateway of a mirror (docs/mirrors.md, "Serve a copy"). The gateway answers reads without a
// key, and refuses every other request with 421. Origin and Age are required. Config.Assets and Config.ServerID are
// required too; the ServerID must be equal to the origin's.
type Mirror struct {
	Origin string               // address of the registry that takes all other requests
	Age    func() time.Duration // returns how much older the data are than the data of the origin
	Fault  func() string        // says why the data cannot be updated; "": they can be; nil: they always can be
}

func (m *Mirror) validate(c Config) error {
	if m.Age == nil || c.Assets == nil || c.ServerID == "" {
		return errors.New("a mirror needs an age, a server id and an asset service in its process")
	}
	if c.Auth != nil || len(c.AuthURLs) > 0 {
		return errors.New("a mirror has no auth service")
	}
	if strings.ContainsAny(m.Origin, "<>\"") { // the header Link has the origin between < and >
		return fmt.Errorf("the origin, %q, must have no brackets and quotes", m.Origin)
	}
	return nil
}

// aged adds the header Age (RFC 9111, 5.1) to each answer.
func (m *Mirror) aged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Age", strconv.FormatInt(int64(max(0, m.Age())/time.Second), 10))
		next.ServeHTTP(w, r)
	})
}

// facts returns what /readyz shows about a mirror.
func (m *Mirror) facts() map[string]any {
	if m == nil {
		return nil
	}
	facts := map[string]any{"origin": m.Origin, "behindSeconds": math.Round(m.Age().Seconds()*10) / 10}
	if m.Fault != nil && m.Fault() != "" {
		facts["fault"] = m.Fault()
	}
	return facts
}

// origin returns m.Origin. If the gateway does not serve a mirror, m is nil and the result is "".
func (m *Mirror) origin() string {
	if m == nil {
		return ""
	}
	return m.Origin
}
