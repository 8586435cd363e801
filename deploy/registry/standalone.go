// Package registry is the whole registry in one process: the three services,
// joined in memory, on stores that are files of one directory.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/gateway"
	"asset-registry/shared/config"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/telemetry"
)

// Config is all that the registry needs to know; the tags make it the flags of
// its command.
type Config struct {
	httpserver.Process
	TLS httpserver.Certificate `embed:"" prefix:"tls-"`

	Addr       string        `default:"127.0.0.1:8080" help:"Address to listen on."`
	AdminAddr  string        `help:"Address to answer the admin API on, such as 127.0.0.1:8079; by default none."`
	Data       string        `default:"./data" help:"Directory of the data; made if there is none."`
	Sandbox    bool          `help:"Let the well-known sandbox keys in."`
	KeysFile   string        `help:"YAML file that lists API keys (see: registry new-key)."`
	ServerID   string        `name:"server-id" help:"Given to clients as the cookie SERVER_ID; by default made of the secret. Change it when older data was restored: synchronisers then start over."`
	BaseURL    string        `name:"base-url" help:"Public address that links start with; by default the one that the client used."`
	Zone       string        `default:"+00:00" help:"Constant offset of printed timestamps."`
	AssetTypes []string      `default:"bounce" help:"Accepted values of assetType."`
	CodeLists  string        `placeholder:"DIR" help:"Directory with lists of codes, CPV.txt, CPVS.txt, dk018.txt and kvtspz.txt, one code a line; codes without a list are checked by their form."`
	MaxBody    int64         `default:"1048576" help:"Largest request body, in bytes."`
	Timeout    time.Duration `default:"10s" help:"Longest time for a request."`

	TransferLifetime time.Duration `default:"2160h" help:"How long a transfer that nobody uses is kept. It holds for transfers made from then on."`

	Memory int64 `help:"Bytes of memory that the process may use: parts of it bound what requests hold. 0 is GOMEMLIMIT, the control group's limit, or the machine's memory, whichever is least."`

	TrustedProxies []netip.Prefix   `help:"Networks of the proxies in front whose X-Forwarded-For counts."`
	Limits         gateway.Limits   `embed:""`
	Settings       gateway.Settings `embed:""`
}

// Run answers until ctx is done, then finishes what is under way. It tells
// ready the address once it answers. A fault of the configuration, a port in
// use and a data directory that will not do are found before anything is
// written.
func Run(ctx context.Context, c Config, log io.Writer, ready func(addr string)) (err error) {
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: c.LogLevel}))
	memory.RespectLimit(logger)
	if err := c.validate(logger); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return err
	}
	defer listener.Close() // again, when Serve has run: of no consequence
	var adminListener net.Listener
	if c.AdminAddr != "" {
		if adminListener, err = net.Listen("tcp", c.AdminAddr); err != nil {
			return err
		}
		defer adminListener.Close() // again, when the auth service has run
	}
	secure, err := c.TLS.Config(logger)
	if err != nil {
		return err
	}
	secrets, err := openData(c.Data)
	if err != nil {
		return err
	}
	if c.ServerID == "" {
		if c.ServerID, err = pinnedServerID(c.Data); err != nil {
			return fmt.Errorf("open data directory: %w", err)
		}
	}
	c.Name = "registry"
	t, stop, err := c.Observe(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := httpserver.MeasureCertificate(t.Meter(), secure); err != nil {
		return err
	}
	authConfig := c.auth(secrets, logger, t)
	authConfig.Admin, authConfig.AdminProxies, authConfig.AdminDrainDelay = adminListener, c.TrustedProxies, c.DrainDelay
	auth, err := authsvc.New(ctx, authConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, auth.Close()) }()
	toAuth := httpserver.InProcess(auth.Handler())
	assets, err := assetsvc.New(ctx, c.assets(secrets, logger, t, toAuth))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, assets.Close()) }()
	if err := syncDirectory(c.Data); err != nil { // the stores' files are new, perhaps
		return fmt.Errorf("open data directory: %w", err)
	}
	if err := finish(c.Data); err != nil {
		return err
	}
	edge, err := gateway.New(ctx, c.gateway(secrets, logger, t, toAuth, assets.Handler()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, edge.Close()) }()
	stopControl, err := control(ctx, c.Data, map[string]snapshot{assetsFile: assets.Snapshot, tokensFile: auth.Snapshot}, auth.AdminKey, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopControl()) }()
	ready(listener.Addr().String())
	return httpserver.Serve(ctx, listener, edge.Handler(), logger, httpserver.ServeOptions{DrainDelay: c.DrainDelay, TLS: secure})
}

// validate reports everything that is wrong with the configuration, with a
// stand-in for what is only known once the data directory is open.
func (c Config) validate(log *slog.Logger) error {
	var faults []error
	if c.Data == "" {
		faults = append(faults, errors.New("the data directory has no name"))
	}
	if c.MaxBody == 0 || c.Timeout == 0 {
		faults = append(faults, errors.New("the body limit and the time-out must be above nought"))
	}
	_, err := config.Zone(c.Zone)
	secrets, nobody := keyring.Ring{make([]byte, keyring.MinLength)}, httpserver.InProcess(http.NotFoundHandler())
	return errors.Join(append(faults, err,
		c.auth(secrets, log, nil).Validate(),
		c.assets(secrets, log, nil, nobody).Validate(),
		c.gateway(secrets, log, nil, nobody, http.NotFoundHandler()).Validate(),
	)...)
}

func (c Config) auth(secrets keyring.Ring, log *slog.Logger, t *telemetry.Telemetry) authsvc.Config {
	return authsvc.Config{
		Store:     "file:" + filepath.Join(c.Data, tokensFile),
		Secrets:   secrets,
		Sandbox:   c.Sandbox,
		KeysFile:  c.KeysFile,
		Timeout:   c.Timeout,
		Log:       log.With("service", "authsvc"),
		Telemetry: t,

		TransferLifetime: c.TransferLifetime,
	}
}

func (c Config) assets(secrets keyring.Ring, log *slog.Logger, t *telemetry.Telemetry, auth http.RoundTripper) assetsvc.Config {
	zone, _ := config.Zone(c.Zone) // validated
	return assetsvc.Config{
		Store:      "file:" + filepath.Join(c.Data, assetsFile),
		Auth:       auth,
		Secrets:    secrets,
		Zone:       zone,
		AssetTypes: c.AssetTypes,
		CodeLists:  c.CodeLists,
		Sandbox:    c.Sandbox,
		MaxBody:    c.MaxBody,
		Memory:     c.Memory,
		Timeout:    c.Timeout,
		Log:        log.With("service", "assetsvc"),
		Telemetry:  t,
	}
}

func (c Config) gateway(secrets keyring.Ring, log *slog.Logger, t *telemetry.Telemetry, auth http.RoundTripper, assets http.Handler) gateway.Config {
	return gateway.Config{
		Assets:    assets,
		Auth:      auth,
		Secrets:   secrets,
		ServerID:  c.ServerID,
		BaseURL:   c.BaseURL,
		MaxBody:   c.MaxBody,
		Memory:    c.Memory,
		Timeout:   c.Timeout,
		Limits:    c.Limits.OrDefault(c.Sandbox),
		Log:       log.With("service", "gateway"),
		Telemetry: t,

		TrustedProxies: c.TrustedProxies,
		Settings:       c.Settings,
	}
}

// Greeting tells a newcomer where the registry is and what to try first.
func Greeting(c Config, addr string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The asset registry answers at http://%s, with its data in %s.\n", addr, c.Data)
	if !c.Sandbox {
		return b.String()
	}
	fmt.Fprintf(&b, "Sandbox keys are on. As the broker whose key is \"broker\", create an asset:\n\n")
	fmt.Fprintf(&b, "  curl -u broker: -H 'Content-Type: application/json' 'http://%s/api/2.5/assets?opt_pretty=1' --data '%s'\n\n", addr, exampleAsset)
	fmt.Fprintf(&b, "and read the feed:\n\n  curl 'http://%s/api/2.5/assets?opt_pretty=1'\n\nA draft, as the new asset is, is listed once it is published; README.md goes on from here.\n", addr)
	return b.String()
}

const exampleAsset = `{"data":{"assetType":"bounce","title":"Office, 240 m2","description":"Ground floor",` +
	`"items":[{"description":"Office","classification":{"scheme":"CAV-PS","id":"04121000-2","description":"Premises"},` +
	`"unit":{"code":"MTK"},"quantity":240.5,"address":{"countryName":"Ukraine"},"registrationDetails":{"status":"unknown"}}],` +
	`"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1637-10"}],` +
	`"assetCustodian":{"name":"State Property Fund","identifier":{"scheme":"UA-EDR","id":"00032945"},` +
	`"address":{"countryName":"Ukraine"},"contactPoint":{"name":"Registrar","telephone":"+380440000000"}}}}`
