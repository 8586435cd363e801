package authsvc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/console"
	"asset-registry/authsvc/internal/httpapi"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/httpserver"
)

// serveAdmin answers the admin API and its console until stop, if they are to
// be answered anywhere.
func (c Config) serveAdmin(ctx context.Context, service *admin.Service, verifier *admin.Verifier, ready func(context.Context) error) (stop func() error, err error) {
	if c.Admin == nil {
		return func() error { return nil }, nil
	}
	pages, err := console.New(c.Secrets, service, verifier, c.Log, c.Now)
	if err != nil {
		return nil, err
	}
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "authsvc-admin", Log: c.Log, LogLevel: slog.LevelInfo, Timeout: c.Timeout, Ready: ready, Telemetry: c.Telemetry, Edge: true, TimeoutOf: c.adminTimeout,
	})
	httpapi.NewAdmin(service, verifier).Route(engine)
	pages.Route(engine)
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		served <- httpserver.Serve(ctx, c.Admin, front{engine, c.AdminProxies}, c.Log, httpserver.ServeOptions{DrainDelay: c.AdminDrainDelay})
	}()
	c.Log.Info("admin API and console", "addr", c.Admin.Addr().String())
	return func() error {
		cancel()
		return <-served
	}, nil
}

// checkTimeout is how long the check of the audit log may take: it reads all of it.
const checkTimeout = 50 * time.Second

// adminTimeout returns the longest time for a request by its route; 0: as others
// have.
func (c Config) adminTimeout(r *gin.Context) time.Duration {
	switch r.Request.URL.Path {
	case adminapi.Prefix + "/audit/verify", "/console/audit/check":
		return max(checkTimeout, c.Timeout)
	}
	return 0
}

// front is what stands before the admin API: like the gateway it meets people,
// takes away what only our own services may say, and finds out who they are.
type front struct {
	next    http.Handler
	proxies clientaddr.Proxies
}

func (f front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(httpserver.RequestIDHeader, httpserver.SanitizeExternal(r))
	if client := f.proxies.Client(r); client.IsValid() {
		r.Header.Set(httpserver.ClientHeader, client.String()) // for the log
		r.RemoteAddr = netip.AddrPortFrom(client, 0).String()  // for all others
	}
	f.next.ServeHTTP(w, r)
}

func (c Config) administer(s store) (*admin.Service, error) {
	sealer, err := admin.NewSealer(c.Secrets)
	if err != nil {
		return nil, err
	}
	service := admin.NewService(s, sealer, c.Log, c.Now)
	return service, service.Measure(c.Telemetry.Meter())
}

// Reseal seals the audit log anew with the current secret, in a store that no
// service has open, or which several may: Redis. It returns how many entries a
// former secret had sealed.
func Reseal(ctx context.Context, c Config) (entries int, err error) {
	if err := c.Validate(); err != nil {
		return 0, err
	}
	c = c.withDefaults()
	s, _, err := c.open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	service, err := c.administer(s)
	if err != nil {
		return 0, err
	}
	return service.Reseal(ctx)
}

// Reseal does the same in the store of a running service.
func (s *Server) Reseal(ctx context.Context) (entries int, err error) { return s.admin.Reseal(ctx) }

// commandTimeout is how long a command may take that works on the store itself.
const commandTimeout = 10 * time.Second

// AdminKey makes a key for the admin API and returns it, to be shown to its
// holder and nobody else: the first one, or one more for who has lost theirs.
func (s *Server) AdminKey(ctx context.Context, name string) (secret string, err error) {
	return adminKey(ctx, s.admin, name)
}

// AdminKey does the same in a store that no service has open, or which several
// may: Redis. It needs no more of c than the store, the secret and the log.
func AdminKey(ctx context.Context, c Config, name string) (secret string, err error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	c = c.withDefaults()
	s, _, err := c.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	service, err := c.administer(s)
	if err != nil {
		return "", err
	}
	return adminKey(ctx, service, name)
}

func adminKey(ctx context.Context, service *admin.Service, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	_, secret, err := service.CreateKey(ctx, admin.OfCommand("admin-key"), adminapi.NewKey{KeySettings: adminapi.KeySettings{Name: name, Role: string(apikey.Operator)}})
	if err != nil {
		return "", fmt.Errorf("make a key for the admin API: %w", err)
	}
	return secret, nil
}
