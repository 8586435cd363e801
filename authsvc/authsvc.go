// Package authsvc is the auth service. It verifies API keys, and issues and verifies the tokens of assets. Only
// the registry's own services call it, each with a signed identity. Operators administer brokers and keys on a
// separate listener.
package authsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/authsvc/internal/httpapi"
	"asset-registry/authsvc/internal/staff"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/closing"
	"asset-registry/shared/errs"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/upstream"
)

// Config is the configuration of the service. Store, Secrets and Log are required;
// the other fields may be zero. The tags make fields settings of the command authsvc.
type Config struct {
	Store string `required:"" help:"file:PATH, redis://HOST:PORT/DB, redis+sentinel://HOST:PORT,.../NAME/DB."`

	// The command reads Secrets from the file.
	SecretFile string       `required:"" help:"File with the services' secret, at least 32 bytes. Rotation: two lines."`
	Secrets    keyring.Ring `kong:"-"` // sign identities and seal stored data; the same for all services

	Sandbox  bool          `help:"Accept the well-known sandbox keys."`
	KeysFile string        `help:"YAML file with API keys."`                 // "": none
	Timeout  time.Duration `default:"5s" help:"Longest time for a request."` // 0: 5 s

	// 0: 90 days.
	TransferLifetime time.Duration `default:"2160h" help:"How long the service keeps a new transfer that nobody claims."`

	// From these services the console gets the public log and the history of assets.
	AssetsURLs []string `name:"assets-url" help:"Addresses of the asset services. Without any, the console has no log."`

	Assets http.RoundTripper `kong:"-"` // transport to the asset service, used instead of AssetsURLs; nil: not used

	// Beside the asset services, these services find published assets by words of their titles.
	SearchURLs []string          `name:"search-url" help:"Addresses of search services. Without any, no title is found."`
	Search     http.RoundTripper `kong:"-"` // used instead of SearchURLs; nil: not used

	// The console shows a command with which an operator can try a new key at this address.
	BaseURL string `name:"base-url" help:"Public address of the registry, for the console's examples."`

	Staff Staff `embed:"" prefix:"oidc-"` // who signs in to the console without a key

	AdminTrustedProxies []netip.Prefix `help:"Networks of proxies before the admin API whose X-Forwarded-For counts."`

	// Problems returns what `registry status` finds wrong with a registry of one process; nil: the console does not know.
	Problems func(context.Context) ([]string, error) `kong:"-"`

	Admin net.Listener `kong:"-"` // of the admin API and its console; Close closes it; nil: neither is served

	AdminServing httpserver.ServeOptions `kong:"-"` // its server drains after the context of New is done

	Log       *slog.Logger         `kong:"-"`
	Telemetry *telemetry.Telemetry `kong:"-"` // nil: none
	Now       func() time.Time     `kong:"-"` // nil: time.Now
}

// Staff are the settings of sign-ins by OpenID Connect.
type Staff = staff.Settings

// The values that a Config uses for fields that are zero. The flags have the same defaults; a test compares
// them.
const (
	DefaultTimeout          = 5 * time.Second
	DefaultTransferLifetime = 90 * 24 * time.Hour
)

// Validate returns an error that lists everything wrong with the configuration,
// including the keys file.
func (c Config) Validate() error {
	var badServers error
	if len(c.AssetsURLs) > 0 {
		badServers = errs.In(upstream.Check(c.AssetsURLs), "--assets-url")
	}
	if len(c.SearchURLs) > 0 {
		badServers = errors.Join(badServers, errs.In(upstream.Check(c.SearchURLs), "--search-url"))
	}
	_, badKeys := c.fixedKeys()
	return errors.Join(
		c.checkStore(), errs.In(c.Secrets.Check(), "the registry's secret"), badServers,
		errs.If(c.BaseURL != "" && !publicAddress.MatchString(c.BaseURL), // not quoted, because it may have a password
			"--base-url must start with http:// or https:// and name a host, without a query"),
		errs.If(c.Log == nil, "the log is missing"),
		errs.In(badKeys, "--keys-file"), c.Staff.Check(),
	)
}

// publicAddress matches addresses without characters that a shell would interpret in the console's examples.
var publicAddress = regexp.MustCompile(`^https?://[0-9A-Za-z.:\[\]_-]+(/[0-9A-Za-z._~/-]*)?$`)

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.TransferLifetime = cmp.Or(c.TransferLifetime, DefaultTransferLifetime)
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Telemetry == nil {
		c.Telemetry = &telemetry.Telemetry{}
	}
	return c
}

// fixedKeys returns the keys of the keys file and, if the sandbox is on, the keys of the sandbox.
func (c Config) fixedKeys() (apikey.Fixed, error) {
	keys := apikey.Fixed{}
	if c.KeysFile != "" {
		listed, err := apikey.ReadFile(c.KeysFile)
		if err != nil {
			return nil, err
		}
		keys = listed
	}
	if c.Sandbox {
		maps.Copy(keys, apikey.Sandbox())
	}
	return keys, nil
}

// Server is a running auth service.
type Server struct {
	store   store
	handler http.Handler
	admin   administration
	closers closing.List
}

// New opens the store, reads the keys file and returns a running service. The
// service stops its background work when ctx is done; Close stops all of it.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure auth service: %w", err)
	}
	c = c.withDefaults()
	fixed, err := c.fixedKeys()
	if err != nil {
		return nil, err
	}
	signer, err := identity.NewSigner(c.Secrets, c.Now)
	if err != nil {
		return nil, err
	}
	sealer, err := token.NewSealer(c.Secrets)
	if err != nil {
		return nil, err
	}
	store, err := c.open()
	if err != nil {
		return nil, err
	}
	admin, err := c.administer(store, apikey.NewVerifier(fixed, store.finder, c.Now))
	if err != nil {
		return nil, errors.Join(err, store.close())
	}
	if store.warnings != nil {
		for _, warning := range store.warnings(ctx) {
			c.Log.Warn("token store", "warning", warning)
		}
	}
	clocks := upstream.NewClocks(c.Now, c.Log)
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "authsvc", Log: c.Log, LogLevel: slog.LevelDebug, Timeout: c.Timeout,
		Ready: clocks.Ready(store.ready, store.tokens), Warnings: clocks.Warnings(store.warnings), Telemetry: c.Telemetry,
	})
	tokens := token.NewService(store.tokens, sealer, c.TransferLifetime)
	keys := httpapi.Keys{
		Verifier: admin.verifier, Endings: admin.guard, Watch: apikey.NewWatch(admin.guard),
		Meter: apikey.NewMeter(store.recorder, c.Now),
	}
	httpapi.New(keys, tokens, admin.Service, c.Now).Route(engine, signer)
	s := &Server{store: store, handler: engine, admin: admin}
	s.closers.Add(store.close)
	if store.watch != nil {
		s.closers.Go(ctx, func(ctx context.Context) { store.watch(ctx, c.Log) })
	}
	s.closers.Go(ctx, func(ctx context.Context) { sweep(ctx, tokens, c.Log, c.Now) })
	assets, err := s.readAssets(c, signer, clocks)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if c.Admin != nil {
		s.closers.Go(ctx, admin.noteRefused)
	}
	if err := c.serveAdmin(ctx, admin, assets, store, &s.closers); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// readAssets returns the access to the asset services and the search services, or nil if c names no asset services.
func (s *Server) readAssets(c Config, signer *identity.Signer, clocks *upstream.Clocks) (*assetclient.Client, error) {
	if c.Admin == nil {
		return nil, nil
	}
	reach := func(name string, by http.RoundTripper, urls []string) (http.RoundTripper, error) {
		if by != nil || len(urls) == 0 {
			return by, nil
		}
		pool, err := upstream.New(upstream.Config{
			Name: name, URLs: urls, Log: c.Log, Meter: c.Telemetry.Meter(), Clocks: clocks,
		})
		if err == nil {
			s.closers.Do(pool.Close)
		}
		return pool, err
	}
	assets, err := reach("assetsvc", c.Assets, c.AssetsURLs)
	if assets == nil || err != nil {
		return nil, err
	}
	client := assetclient.New(assets, signer)
	search, err := reach("searchsvc", c.Search, c.SearchURLs)
	if search != nil && err == nil {
		client = client.WithSearch(search)
	}
	return client, err
}

// Handler returns the handler of the internal API.
func (s *Server) Handler() http.Handler { return s.handler }

// Close stops the admin API, waits for writes in progress and closes the store.
func (s *Server) Close() error { return s.closers.Close() }

// The intervals between sweeps of transfers.
const (
	// sweepFirst is the time from the start to the first sweep. A clock that was wrong at the start is set by then. It is
	// less than a day, so that a machine that starts each night sweeps too.
	sweepFirst = 20 * time.Hour
	sweepEvery = 6 * time.Hour
	sweepAgain = time.Minute // time from a failed sweep to the next one
	clockError = time.Hour
)

// clock notices whether somebody sets the time of day after the moment in the field `begun`.
type clock struct {
	begun time.Time // has a reading of the monotonic clock
	shown time.Time
	now   func() time.Time
}

func newClock(now func() time.Time) clock { return clock{time.Now(), now().Round(0), now} }

// leaps reports whether somebody has changed the clock by more than clockError since the moment in the field `begun`.
// The time that the clock shows may then be wrong.
func (c clock) leaps() bool {
	return (c.now().Round(0).Sub(c.shown) - time.Since(c.begun)).Abs() > clockError
}

// sweep removes expired transfers regularly, until ctx is done. It removes nothing while the clock may be wrong: soon
// after the start, when the clock is perhaps not set yet, and after somebody has changed the clock by more than an
// hour.
func sweep(ctx context.Context, tokens *token.Service, log *slog.Logger, now func() time.Time) {
	steady := newClock(now)
	for wait := sweepFirst; sleep.For(ctx, wait); {
		wait = sweepEvery
		if steady.leaps() {
			log.Warn("no expired transfers are removed: the clock was set by more than an hour; is it right?")
			steady = newClock(now)
			continue
		}
		if err := tokens.Sweep(ctx, now()); err != nil && ctx.Err() == nil {
			log.Warn("remove expired transfers", "error", err, "retry_in", sweepAgain.String())
			wait = sweepAgain
		}
	}
}
