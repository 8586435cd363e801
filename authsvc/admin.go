package authsvc

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/console"
	"asset-registry/authsvc/internal/ending"
	"asset-registry/authsvc/internal/httpapi"
	"asset-registry/authsvc/internal/staff"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/closing"
	"asset-registry/shared/errs"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/sleep"
)

// administration has what operators need to work with brokers, keys and the audit log.
type administration struct {
	*admin.Service
	*audit.Checker
	operators *admin.Authenticator
	verifier  *apikey.Verifier
	guard     *ending.Guard
}

func (c Config) administer(s store, verifier *apikey.Verifier) (administration, error) {
	sealer, err := audit.NewSealer(c.Secrets)
	if err != nil {
		return administration{}, err
	}
	checker := audit.NewChecker(s.audit, admin.Records(s.admin), sealer, c.Now)
	checker.Measure(c.Telemetry.Meter())
	service := admin.NewService(s.admin, sealer, c.Log, c.Now)
	guard := ending.New(s.told, service, c.Log, c.Telemetry.Meter())
	verifier = verifier.WithGuard(guard)
	return administration{
		Service: service.WithSecond(guard), Checker: checker,
		operators: admin.NewAuthenticator(verifier, s.recorder, c.Log, c.Now),
		verifier:  verifier, guard: guard,
	}, nil
}

// serveAdmin serves the admin API and its console if c has a listener for them. To close the list stops both.
func (c Config) serveAdmin(
	ctx context.Context, a administration, assets *assetclient.Client, s store, opened *closing.List,
) error {
	if c.Admin == nil {
		return nil
	}
	people, err := staff.New(c.Staff, c.Log, c.Now)
	if err != nil {
		return err
	}
	options := console.Options{
		Secrets: c.Secrets, Users: a.operators, Ended: s.sessions, BaseURL: c.BaseURL, Log: c.Log, Now: c.Now,
		Problems: c.Problems, Warnings: s.warnings, Staff: people,
	}
	if assets != nil {
		a.Service, options.Assets = a.WithAssets(assets), assets
	}
	options.Admin, options.Checker = a.Service, a.Checker
	pages, err := console.New(options)
	if err != nil {
		return err
	}
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "authsvc-admin", Log: c.Log, LogLevel: slog.LevelInfo, Timeout: c.Timeout, Ready: s.ready,
		Telemetry: c.Telemetry, Edge: true, TimeoutOf: c.adminTimeout,
	})
	httpapi.NewAdmin(a.Service, a.Checker, a.operators).Route(engine)
	pages.Route(engine)
	opened.Serve(ctx, func(ctx context.Context) error {
		return httpserver.Serve(ctx, c.Admin, edge{engine, c.AdminTrustedProxies}, c.Log, c.AdminServing)
	})
	c.Log.Info("admin API and console", "addr", c.Admin.Addr().String())
	return nil
}

// noteEvery is the time between two notes of refused keys.
const noteEvery = time.Minute

// noteRefused notes refused keys in the audit log once a minute until ctx ends, and then a last time.
func (a administration) noteRefused(ctx context.Context) {
	for sleep.For(ctx, noteEvery) {
		a.operators.NoteRefused(ctx, a.Service)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLast)
	defer cancel()
	a.operators.NoteRefused(last, a.Service)
}

// noteLast is the longest time of the last note, which a stop waits for.
const noteLast = time.Second

// wholeTimeout is the longest time for a check or an export of the audit log. Both may read the whole log.
const wholeTimeout = 50 * time.Second

// signInTimeout is the longest time for the end of a sign-in by OpenID Connect, which may ask the provider three times.
const signInTimeout = 15 * time.Second

// adminTimeout returns the longest time for a request; 0 means c.Timeout.
func (c Config) adminTimeout(r *gin.Context) time.Duration {
	path := r.Request.URL.Path
	if path == adminapi.Prefix+"/audit/verify" || path == "/console/audit/check" ||
		strings.HasPrefix(path, console.ExportPath) {
		return max(wholeTimeout, c.Timeout)
	}
	if path == staff.BackPath {
		return max(signInTimeout, c.Timeout)
	}
	return 0
}

// edge receives the requests of the admin API. It removes or replaces headers that only the registry's own
// services may set, as the gateway does.
type edge struct {
	next    http.Handler
	proxies clientaddr.Proxies
}

func (e edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(httpserver.RequestIDHeader, httpserver.SanitizeExternal(r))
	if client := e.proxies.Client(r); client.IsValid() {
		r.Header.Set(httpserver.ClientHeader, client.String()) // for the log
		r.RemoteAddr = netip.AddrPortFrom(client, 0).String()  // for everything else
	}
	e.next.ServeHTTP(w, r)
}

// Reseal seals the audit log with the current secret, and returns the number of entries that a former secret had
// sealed. If the store is a file, no service may have the file open. If the store is in Redis, services may use
// it during the call.
func Reseal(ctx context.Context, c Config) (entries int, err error) {
	err = c.withAdministration(func(a administration) error {
		entries, err = a.Reseal(ctx)
		return err
	})
	return entries, err
}

// Reseal seals the audit log of a running service with the current secret. It returns the same number as the
// function Reseal.
func (s *Server) Reseal(ctx context.Context) (entries int, err error) { return s.admin.Reseal(ctx) }

// CheckAudit checks the chain of the audit log. It reads all of it.
func (s *Server) CheckAudit(ctx context.Context) (adminapi.Verification, error) {
	return s.admin.Check(ctx)
}

// commandTimeout is the longest time for a command that works on the store.
const commandTimeout = 10 * time.Second

// AdminKey creates a key of the admin API and returns it. A registry gets its first such key in this way, and
// may get more. Show the key to its holder only.
func (s *Server) AdminKey(ctx context.Context, name string) (secret string, err error) {
	return adminKey(ctx, s.admin.Service, name)
}

// AdminKey creates a key of the admin API in the store of c. If the store is a file, no service may have the
// file open. If the store is in Redis, services may use it during the call. AdminKey uses c.Store, c.Secrets and
// c.Log.
func AdminKey(ctx context.Context, c Config, name string) (secret string, err error) {
	err = c.withAdministration(func(a administration) error {
		secret, err = adminKey(ctx, a.Service, name)
		return err
	})
	return secret, err
}

// AcceptKeys lets the keys in the store of c go on as they are, and notes it in the audit log. A person calls it after
// the endings of keys were lost together with the last changes of the store. If the store is a file, no service may
// have the file open.
func AcceptKeys(ctx context.Context, c Config) error {
	return c.withAdministration(func(a administration) error {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		by := admin.OfCommand("accept-keys")
		if err := a.Note(ctx, by, audit.AcceptKeys, audit.LogSubject, struct{}{}); err != nil {
			return err
		}
		return a.guard.Accept(ctx)
	})
}

// withAdministration opens the store, runs do, and closes the store.
func (c Config) withAdministration(do func(administration) error) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	return c.withStore(func(s store) error {
		a, err := c.administer(s, apikey.NewVerifier(nil, s.finder, c.Now))
		if err != nil {
			return err
		}
		return do(a)
	})
}

func adminKey(ctx context.Context, service *admin.Service, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	settings := adminapi.KeySettings{Name: name, Role: string(apikey.Operator)}
	_, secret, err := service.CreateKey(ctx, admin.OfCommand("admin-key"), adminapi.NewKey{KeySettings: settings})
	return secret, errs.In(err, "create a key of the admin API")
}
