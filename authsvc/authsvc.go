// Package authsvc is the auth service: it knows whose an API key is, and
// issues and verifies the tokens of assets. Only our own services call it, each
// with an identity that is signed.
package authsvc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/boltstore"
	"asset-registry/authsvc/internal/httpapi"
	"asset-registry/authsvc/internal/redisstore"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/redisurl"
	"asset-registry/shared/telemetry"
)

// Config is all that the service needs to know. Fields that say so may be left zero.
type Config struct {
	Store     string        // where token records are kept: "file:" and a path, or the URL of a Redis server
	Secrets   keyring.Ring  // sign identities and seal what is stored; the same for all services
	Sandbox   bool          // the sandbox keys exist
	KeysFile  string        // YAML file that lists API keys; empty: none
	Admin     net.Listener  // where the admin API and its console answer; nil: nowhere. Close closes it
	Timeout   time.Duration // longest time for a request; 0: 5 s
	Log       *slog.Logger
	Telemetry *telemetry.Telemetry // nil: none
	Now       func() time.Time     // nil: time.Now

	TransferLifetime time.Duration // how long a transfer that nobody claims is kept; 0: 90 days

	AdminProxies    clientaddr.Proxies // networks of proxies before the admin API whose X-Forwarded-For counts; empty: none
	AdminDrainDelay time.Duration      // how long the admin API goes on when New's context is done, while /readyz says 503
}

const (
	defaultTimeout  = 5 * time.Second
	defaultLifetime = 90 * 24 * time.Hour
	fileScheme      = "file:"
)

// Validate reports everything that is wrong with the configuration, the keys
// file included.
func (c Config) Validate() error {
	var faults []error
	if path, isFile := strings.CutPrefix(c.Store, fileScheme); (!isFile || path == "") && !c.onRedis() {
		faults = append(faults, fmt.Errorf(
			"the store must be %q and the path of a file, or a URL of redis://, rediss://, redis+sentinel:// or rediss+sentinel://",
			fileScheme))
	}
	if c.onRedis() {
		faults = append(faults, redisstore.CheckURL(c.Store))
	}
	if err := c.Secrets.Check(); err != nil {
		faults = append(faults, fmt.Errorf("the registry's secret: %w", err))
	}
	if c.Timeout < 0 {
		faults = append(faults, errors.New("the time-out is negative"))
	}
	if c.TransferLifetime < 0 {
		faults = append(faults, errors.New("the lifetime of a transfer is negative"))
	}
	if c.Log == nil {
		faults = append(faults, errors.New("the log is missing"))
	}
	if _, err := c.keys(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (c Config) onRedis() bool {
	single := strings.HasPrefix(c.Store, "redis://") || strings.HasPrefix(c.Store, "rediss://")
	return single || redisurl.IsSentinel(c.Store)
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.TransferLifetime == 0 {
		c.TransferLifetime = defaultLifetime
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Telemetry == nil {
		c.Telemetry = &telemetry.Telemetry{}
	}
	return c
}

// Server is a running auth service.
type Server struct {
	store     store
	handler   http.Handler
	admin     *admin.Service
	stopAdmin func() error
	stopSweep func()
}

// store keeps all that the service knows.
type store interface {
	token.Store
	apikey.Store
	admin.Store
}

// New opens the store, reads the keys and returns a service that is ready to answer.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure auth service: %w", err)
	}
	c = c.withDefaults()
	keys, err := c.keys()
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
	store, warnings, err := c.open()
	if err != nil {
		return nil, err
	}
	service, err := c.administer(store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, warning := range warnings(ctx) {
		c.Log.Warn("token store", "warning", warning)
	}
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "authsvc", Log: c.Log, LogLevel: slog.LevelDebug, Timeout: c.Timeout, Ready: store.Ready, Warnings: warnings, Telemetry: c.Telemetry,
	})
	verifier := admin.NewVerifier(keys, store, store, c.Log, c.Now)
	tokens := token.NewService(store, sealer, c.TransferLifetime)
	keysAPI := httpapi.Keys{Verifier: verifier, Watch: admin.NewWatch(store), Meter: admin.NewMeter(store)}
	httpapi.New(keysAPI, tokens, c.Now).Route(engine, signer)
	stopAdmin, err := c.serveAdmin(ctx, service, verifier, store.Ready)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	stopSweep := sweep(ctx, tokens, c.Log, c.Now)
	return &Server{store: store, handler: engine, admin: service, stopAdmin: stopAdmin, stopSweep: stopSweep}, nil
}

// open opens the store, and tells how to ask it what it is in danger of.
func (c Config) open() (store, func(context.Context) []string, error) {
	if c.onRedis() {
		store, err := redisstore.Open(c.Store, c.Telemetry.Meter())
		if err != nil {
			return nil, nil, err
		}
		return store, store.Warnings, nil
	}
	// A command on plain keys knows no secret, and the file is not checked.
	options := boltstore.Options{Secrets: c.Secrets, Log: c.Log}
	store, err := boltstore.Open(strings.TrimPrefix(c.Store, fileScheme), options)
	if err != nil {
		return nil, nil, err
	}
	if err := store.Measure(c.Telemetry.Meter()); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, func(context.Context) []string { return nil }, nil
}

func (c Config) keys() (apikey.Keys, error) {
	keys := apikey.Keys{}
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

// Handler answers the service's requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Close waits for writes under way, ends the admin API and closes the store.
func (s *Server) Close() error {
	err := s.stopAdmin()
	s.stopSweep()
	return errors.Join(err, s.store.Close())
}

// NewKey returns a new API key, which is to be shown to its holder and nobody
// else, and the hash by which a keys file lists it or AddKey stores it.
func NewKey() (key, hash string) {
	key = apikey.New()
	return key, authapi.Hash(key)
}

// AddKey stores a key, by its hash, at the address of a store. Services on it
// know the key at once.
func AddKey(ctx context.Context, address, hash string, i identity.Identity) error {
	if !apikey.IsID(i.KeyID) {
		return apikey.ErrID
	}
	return withStore(address, func(s store) error { return s.AddKey(ctx, hash, i) })
}

// RevokeKey removes the key with a KeyID at the address of a store. Gateways
// trust it for less than a second yet.
func RevokeKey(ctx context.Context, address, keyID string) error {
	return withStore(address, func(s store) error { return s.RemoveKey(ctx, keyID) })
}

func withStore(address string, do func(store) error) (err error) {
	s, _, err := Config{Store: address}.withDefaults().open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}
