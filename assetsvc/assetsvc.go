// Package assetsvc is the asset service. It keeps the assets and orders their
// changes into the feed. It is a backend of the gateway, and accepts only requests
// with an identity that a service of the registry has signed.
package assetsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/endings"
	"asset-registry/assetsvc/internal/httpapi"
	"asset-registry/assetsvc/internal/live"
	"asset-registry/assetsvc/internal/mongostore"
	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/authapi"
	"asset-registry/shared/closing"
	"asset-registry/shared/errs"
	"asset-registry/shared/fair"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/translog"
	"asset-registry/shared/upstream"
)

// Config configures a Server. Secrets and Log are required. A mirror needs Mirror; every other service needs Store,
// and either AuthURLs or Auth. The tags make fields settings of the command assetsvc.
type Config struct {
	Store string `required:"" help:"Store of the assets: file:PATH, or mongodb://HOST:PORT,.../DATABASE?replicaSet=NAME."`

	// If a host name has several addresses, each of them counts as an auth service.
	AuthURLs []string          `name:"auth-url" default:"http://127.0.0.1:8082" help:"Addresses of the auth services."`
	Auth     http.RoundTripper `kong:"-"` // transport to the auth service, used instead of AuthURLs; nil: not used

	// Documents may name files of these services. The addresses of the files begin with the base URL.
	FilesURLs []string          `name:"files-url" help:"Addresses of the file services; by default there are none."`
	Files     http.RoundTripper `kong:"-"` // transport to the file service, used instead of FilesURLs; nil: not used

	BaseURL string `name:"base-url" help:"Public address of the registry, with which addresses of files begin."`

	// The command reads Secrets from the file.
	SecretFile string `required:"" help:"File of secrets, one a line, at least 32 bytes each; the first signs and seals."`

	Secrets keyring.Ring `kong:"-"` // keys that sign identities and addresses of files; the same for all services

	Zone *time.Location `kong:"-"` // zone of printed timestamps, a constant offset; nil: UTC

	AssetTypes []string `default:"bounce" help:"Accepted values of assetType."` // empty: bounce
	Sandbox    bool     `help:"Accept sandboxParameters."`

	// Codes of a scheme without a list are checked by their form.
	CodeLists string `placeholder:"DIR" help:"Directory of lists of codes: CPV.txt, identifier-schemes.txt and others."`

	// All services that share a store must hide the same fields. The command snapshot must hide them too.
	Hide []string `help:"Fields that only callers with an API key see: contacts, addresses, locations."`

	MaxBody int64           `default:"1048576" help:"Largest request body, in bytes."` // 0: 1 MiB
	Timeout time.Duration   `default:"10s" help:"Longest time for a request."`         // 0: 10 s
	Memory  int64           `help:"Bytes that the process may use; 0: the least of GOMEMLIMIT, control group and machine."`
	Places  *fair.Semaphore `kong:"-"` // places that the services of this process share; nil: the service's own

	Log       *slog.Logger         `kong:"-"`
	Telemetry *telemetry.Telemetry `kong:"-"` // nil: none
	Now       func() time.Time     `kong:"-"` // nil: time.Now

	// LogKeys are the keys that sign the public log, with the newest key first. All keys have the same name,
	// which is the log's origin (docs/log.md, "Origin and keys"). Without keys the service makes no log.
	LogKeys []translog.Key `kong:"-"`
	// LogPolicy names the witnesses of the public log, with their addresses, and how many must cosign a
	// checkpoint before it is published. Nil: the log has no witnesses.
	LogPolicy *translog.Policy `kong:"-"`

	// Changing may be nil. Otherwise it is called before a batch of assets is written, with the ids of these assets. It
	// returns the function `done`, which the store calls as soon as the batch can write nothing more. Changing needs a
	// Store in a file: a store of another kind also has writes of other processes, which do not call Changing.
	Changing func(ids []string) (done func()) `kong:"-"`

	// All services that share a store also share this directory. Without it, Snapshot does nothing.
	SnapshotDir string `placeholder:"DIR" help:"Directory of snapshots; by default none are kept."`
	Snapshot

	Webhooks Webhooks `embed:"" prefix:"webhook-"`

	// Mirror makes the service a mirror, which serves a copy of another registry. A mirror has no Store, Auth
	// or LogKeys. Nil: the service is no mirror.
	Mirror *Mirror `kong:"-"`

	// The following fields are for a store in MongoDB only. A majority of MongoDB's members confirms each barrier, so
	// a barrier costs about as much as a write.
	StoreTimeout time.Duration `default:"2s" help:"Longest time for one operation of MongoDB."`              // 0: 2 s
	StoreLease   time.Duration `default:"3s" help:"With MongoDB, a batch that stays open longer is fenced."` // 0: 3 s

	FreshReads bool `help:"Reads never go back in time while MongoDB elects a primary. They wait for a shared barrier."`

	clocks *upstream.Clocks // the clocks of the services that this one calls; withDefaults sets it
}

// The values that a Config uses for fields that are zero. The defaults of the flags are the same; a test
// compares them.
const (
	DefaultMaxBody      = 1 << 20
	DefaultTimeout      = 10 * time.Second
	DefaultStoreTimeout = mongostore.DefaultTimeout
	DefaultStoreLease   = mongostore.DefaultLease
)

// Validate returns all faults of the configuration, joined; nil if it has no fault.
func (c Config) Validate() error {
	_, badHide := asset.ParseGroups(c.Hide)
	_, badLists := c.codeLists()
	k, badKind := c.kind()
	return errors.Join(
		c.validateStore(),
		errs.In(c.Secrets.Check(), "the registry's secret"),
		c.validateFiles(),
		errs.If(c.Changing != nil && (badKind == nil && !k.announces || c.Mirror != nil),
			"writes are announced only of a store in a file that is no mirror's"),
		errs.In(badHide, "--hide"),
		checkLog(c.LogKeys, c.LogPolicy),
		errs.If(c.Log == nil, "the log is missing"),
		errs.In(badLists, "--code-lists"),
	)
}

// validateFiles checks the addresses of the file services.
func (c Config) validateFiles() error {
	if len(c.FilesURLs) == 0 {
		return nil
	}
	return errors.Join(errs.In(upstream.Check(c.FilesURLs), "--files-url"),
		errs.If(c.BaseURL == "", "--files-url needs --base-url"))
}

// validateStore checks the settings that every service except a mirror needs.
func (c Config) validateStore() error {
	if c.Mirror != nil {
		return errs.If(c.Store != "" || c.Auth != nil || len(c.AuthURLs)+len(c.LogKeys) > 0,
			"a mirror has no store, no auth service and no keys of the log")
	}
	_, err := c.kind()
	if c.Auth == nil {
		err = errors.Join(err, errs.In(upstream.Check(c.AuthURLs), "--auth-url"))
	}
	return err
}

// hidden returns the groups in the field Hide. Validate has checked their names.
func (c Config) hidden() []asset.Group {
	hidden, _ := asset.ParseGroups(c.Hide)
	return hidden
}

func (c Config) withDefaults() Config {
	c.Zone = cmp.Or(c.Zone, time.UTC)
	if len(c.AssetTypes) == 0 {
		c.AssetTypes = []string{"bounce"}
	}
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Memory = cmp.Or(c.Memory, memory.Limit())
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Telemetry = cmp.Or(c.Telemetry, &telemetry.Telemetry{})
	if c.Places == nil {
		c.Places = fair.NewPlaces()
	}
	c.clocks = upstream.NewClocks(c.Now, c.Log)
	return c
}

// Server is a running asset service.
type Server struct {
	store   store
	public  *publiclog.Reader // reads the public log in the store
	log     *logWriter        // nil: no public log
	handler http.Handler
	live    *live.Watcher
	ending  chan struct{} // closed by Drain
	drain   func()

	snapshots *snapshot.Keeper // nil: no snapshots are configured
	webhooks  *webhook.Sender  // nil: this service is a mirror

	closers closing.List
}

// New opens the store and returns a service that answers requests.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure asset service: %w", err)
	}
	c = c.withDefaults()
	signer, err := identity.NewSigner(c.Secrets, c.Now)
	if err != nil {
		return nil, err
	}
	codes, err := c.codeLists()
	if err != nil {
		return nil, err
	}
	s := &Server{ending: make(chan struct{})}
	s.drain = sync.OnceFunc(func() { close(s.ending) })
	if s.store, err = c.openStore(ctx); err != nil {
		return nil, err
	}
	s.closers.Add(s.store.Close)
	s.public = publiclog.NewReader(s.store)
	if err := s.start(c, signer, codes); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start makes the registry of the open store and the handler of its API, and starts the work
// in the background.
func (s *Server) start(c Config, signer *identity.Signer, codes asset.CodeLists) error {
	auth, err := s.connectAuth(c)
	if err != nil {
		return err
	}
	rules := asset.Rules{Types: c.AssetTypes, Sandbox: c.Sandbox, Zone: c.Zone, Codes: codes, Hidden: c.hidden()}
	toAuth := authapi.NewClient(auth, signer, "assetsvc")
	assets := registry.New(s.store, toAuth, rules, s.store.Now)
	if len(c.LogKeys) > 0 {
		assets = assets.WithLog(s.public)
	}
	if assets, err = s.bindFiles(c, assets, signer); err != nil {
		return err
	}
	held := httpapi.NewMemory(c.Memory)
	held.Places = c.Places
	s.measure(c.Telemetry.Meter(), assets, held)
	engine := httpserver.NewEngine(httpserver.Options{
		Name:      "assetsvc",
		Log:       c.Log,
		LogLevel:  slog.LevelDebug,
		Timeout:   c.Timeout,
		TimeoutOf: timeoutOf,
		Ready:     c.clocks.Ready(assets.Ready, s.store),
		Warnings:  c.clocks.Warnings(s.Warnings),
		Telemetry: c.Telemetry,
	})
	s.handler = engine
	s.live = live.New(assets, httpapi.PrintOffset(c.Zone), c.Memory/16, c.Log)
	s.closers.Do(s.live.Close)
	api := httpapi.New(assets, c.Zone, c.MaxBody, held)
	api.Hide(c.hidden())
	if c.SnapshotDir != "" {
		if s.snapshots, err = startSnapshots(s.store, c, &s.closers); err != nil {
			return err
		}
		api.ServeSnapshots(s.snapshots)
	}
	if err := s.startWebhooks(api, assets, c); err != nil {
		return err
	}
	api.Route(engine, signer)
	api.RouteFeed(engine, signer, s.live, s.ending)
	origin, err := s.keepLog(c)
	if err != nil {
		return err
	}
	if origin != nil {
		api.RouteLog(engine, signer, s.public, origin)
	}
	if store, keeps := s.store.(endings.Store); keeps {
		s.closers.Go(context.Background(), func(ctx context.Context) { endings.Keep(ctx, store, toAuth, c.Log) })
	}
	return nil
}

// measure registers the metrics of the registry and of the memory.
func (s *Server) measure(meter metric.Meter, assets *registry.Registry, held httpapi.Memory) {
	assets.Measure(
		telemetry.Counter(meter, "registry.assets.created", "{asset}", "Assets that this process has created, by broker."),
		telemetry.Counter(meter, "registry.assets.published", "{asset}",
			"Assets that this process has taken from draft into the feed, by the broker who owns them."))
	s.closers.Do(memory.Measure(meter, map[string]memory.Limiter{"answers": held.Answers, "work": held.Work}))
}

// connectAuth returns the transport to the auth service.
func (s *Server) connectAuth(c Config) (http.RoundTripper, error) {
	if c.Mirror != nil {
		return noAuth{}, nil
	}
	return s.connect(c, "authsvc", c.Auth, c.AuthURLs)
}

// connect returns the given transport to a service, or a new one to its addresses if this one is nil.
func (s *Server) connect(c Config, name string, given http.RoundTripper, urls []string) (http.RoundTripper, error) {
	if given != nil {
		return given, nil
	}
	pool, err := c.newPool(name, urls)
	if err != nil {
		return nil, err
	}
	s.closers.Do(pool.Close)
	return pool, nil
}

// newPool returns connections to other services.
func (c Config) newPool(name string, urls []string) (*upstream.Pool, error) {
	return upstream.New(upstream.Config{
		Name: name, URLs: urls, Log: c.Log, Meter: c.Telemetry.Meter(), Clocks: c.clocks,
	})
}

// timeoutOf returns the time limit of a request, which depends on its route; 0 stands for Config.Timeout.
func timeoutOf(c *gin.Context) time.Duration {
	if httpapi.IsLive(c) {
		return httpserver.Unlimited
	}
	return 0
}

// Handler returns the handler of the service's requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Drain ends the live feeds, and stops the sending of webhooks.
func (s *Server) Drain() {
	s.drain()
	if s.webhooks != nil {
		s.webhooks.Drain()
	}
}

// Close waits for the writes under way and closes the store and the connections.
func (s *Server) Close() error { return s.closers.Close() }
