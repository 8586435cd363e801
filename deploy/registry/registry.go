// Package registry runs the whole registry in one process: the gateway, the services
// of assets, tokens and files, and with Config.Search the search service. They call
// each other in memory and keep their data in one directory. The package also backs
// up, restores, checks and migrates such a directory.
package registry

import (
	"cmp"
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
	"sync/atomic"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/deploy/registry/certificate"
	"asset-registry/filesvc"
	"asset-registry/gateway"
	"asset-registry/searchsvc"
	"asset-registry/shared/closing"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
	"asset-registry/shared/fair"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/logkey"
	"asset-registry/shared/memory"
	"asset-registry/shared/private"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/translog"
)

// Config is the configuration of Run. Its tags declare the flags of the command
// `registry serve`.
type Config struct {
	daemon.Process
	TLS httpserver.Certificate `embed:"" prefix:"tls-"`

	// With ACME the address is that of Authority. If the port is taken, the registry starts without it.
	PlainAddr string `placeholder:"ADDR" help:"Address of plain HTTP that redirects to --base-url, with --tls-cert."`

	// The certificate is for the host of BaseURL, and for no other name.
	ACME      bool                  `name:"acme" help:"Get the certificate by ACME, and accept the authority's terms."`
	Authority certificate.Authority `embed:"" prefix:"acme-"`

	Addr      string `default:"127.0.0.1:8080" help:"Address to listen on."`
	AdminAddr string `help:"Address of the admin API, such as 127.0.0.1:8079; by default there is none."`
	Data      string `default:"./data" help:"Data directory; created if it does not exist."`
	Sandbox   bool   `help:"Accept the well-known sandbox keys."`
	KeysFile  string `help:"YAML file that lists API keys (see: registry new-key)."`

	Staff authsvc.Staff `embed:"" prefix:"oidc-"` // who signs in to the console without a key

	// By default the file of keys is log.key in the data directory. The first start creates it.
	assetsvc.LogFiles

	// By default the id is derived from the secret. A new id makes synchronisers start over.
	ServerID string `name:"server-id" help:"Cookie SERVER_ID. Change it after you restored older data."`

	// Addresses of files start with the base URL. Without it, only a sandbox and a registry that listens on a
	// loopback address accept files, and the addresses start with the address of the listener.
	BaseURL string `name:"base-url" help:"Public address that links start with; by default the address of the request."`

	Zone       string   `default:"+00:00" help:"Constant offset of printed timestamps."`
	AssetTypes []string `default:"bounce" help:"Accepted values of assetType."`

	// A list has the codes of one scheme, one code a line; a name may follow the code. If a scheme has no list, only
	// the form of its codes is checked. Files such as CPV.uk.json and CPV.en.json have names only (docs/search.md,
	// "Names of codes").
	CodeLists string `placeholder:"DIR" help:"Directory of lists and names of codes: CPV.txt, CPV.uk.json and others."`

	// Callers with an API key see all fields.
	Hide []string `help:"Fields that only callers with an API key see: contacts, addresses, locations."`

	MaxBody int64         `default:"1048576" help:"Largest request body, in bytes."`
	Timeout time.Duration `default:"10s" help:"Longest time for a request."`

	// A new value applies only to transfers that are created from then on.
	TransferLifetime time.Duration `default:"2160h" help:"How long an unused transfer is kept."`

	// Snapshots are kept in the data directory.
	assetsvc.Snapshot

	// Files of documents are kept in the data directory, or in a bucket (MoveFiles).
	Files filesvc.Limits `embed:""`
	Draw  []string       `kong:"-"` // a command from filesvc.DrawCommand; nil: the registry makes no small pictures

	// The index is kept in the data directory. It is made from the feed, so it may be removed.
	Search   bool   `negatable:"" help:"Answer searches, and serve the pages for people."`
	Synonyms string `placeholder:"FILE" help:"File of further words of one meaning; by default none."`

	// The pages for people have links to maps and sales.
	Links searchsvc.Links `embed:""`

	// The registry sends webhooks only to public addresses, and uses no proxy.
	Webhooks assetsvc.Webhooks `embed:"" prefix:"webhook-"`

	// All requests together may hold a part of this memory. 0 stands for the smallest of three limits: GOMEMLIMIT,
	// the limit of the control group, and the memory of the machine.
	Memory int64 `help:"Bytes that the process may use; 0: GOMEMLIMIT, the control group's or the machine's."`

	TrustedProxies []netip.Prefix   `help:"Networks of proxies whose X-Forwarded-For is believed."`
	Limits         gateway.Limits   `embed:""`
	Settings       gateway.Settings `embed:""`
}

// Run serves requests until ctx is done, then finishes the requests under way. It calls the function `ready` with
// the public address once it serves. It checks the configuration, the ports and the data directory before it
// writes anything.
func Run(ctx context.Context, c Config, log io.Writer, ready func(addr string)) (err error) {
	logger := httpserver.NewLog(log, c.LogLevel, "registry")
	memory.RespectLimit(logger, c.Memory)
	if err := errors.Join(c.validate(logger), private.Check(logger, c.places()...)); err != nil {
		return err
	}
	on, err := c.listen(logger)
	if err != nil {
		return err
	}
	defer on.close() // it does no harm if the listeners are closed already
	secure, err := c.certificate().Config(logger)
	if err != nil {
		return err
	}
	givenKeys, policy, err := c.LogFiles.Read()
	if err != nil {
		return err
	}
	var opened closing.List
	defer func() { err = errors.Join(err, opened.Close()) }()
	c.Name = "registry"
	t, stop, err := c.Observe(ctx, logger)
	if err != nil {
		return err
	}
	opened.Add(stop)
	secrets, err := openData(c.Data) // the first step that writes to disk
	if err != nil {
		return err
	}
	if c.ServerID == "" {
		if c.ServerID, err = pinnedServerID(c.Data); err != nil {
			return fmt.Errorf("open data directory: %w", err)
		}
	}
	var acme func() certificate.State
	if c.ACME {
		m, err := c.keepCertificate(ctx, on.plain, logger, t.Meter(), &opened)
		if err != nil {
			return err
		}
		secure, acme = m.TLS(), m.State
	} else if on.plain != nil {
		c.servePlain(ctx, on.plain, new(certificate.Manager), logger, &opened)
	}
	httpserver.MeasureCertificate(t.Meter(), secure)
	measureBackup(t.Meter(), c.Data)
	at := on.public.Addr().String()
	c.Webhooks.OwnPorts = c.ownPorts(on)
	p := process{secrets: secrets, log: logger, telemetry: t.Telemetry, places: fair.NewPlaces(),
		ownURL: httpserver.OwnURL(c.scheme(), at), filesURL: c.filesURL(at)}
	p.observer = observer{config: c, address: at, started: time.Now().UTC(), figures: t.Figures, certificate: acme}
	p.logPolicy, p.logKeys = policy, givenKeys
	if len(givenKeys) == 0 {
		p.logKeys, err = logkey.ReadOrCreate(filepath.Join(c.Data, logKeyFile), cmp.Or(c.BaseURL, c.Addr))
	}
	if err != nil {
		return err
	}
	service, err := c.start(ctx, p, on.admin, &opened)
	if err != nil {
		return err
	}
	ready(at)
	serving := c.Serving(secure, service.Drain)
	serving.Refusals = gateway.RefusalHeaders()
	return httpserver.Serve(ctx, on.public, service.Handler(), logger, serving)
}

// process has the settings that the services share.
type process struct {
	secrets   keyring.Ring
	logKeys   []translog.Key
	logPolicy *translog.Policy
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	ownURL    string // address of the public listener
	filesURL  string // beginning of the addresses of files; "": the registry takes no files
	observer  observer
	places    *fair.Semaphore // shared by the services
}

// certificate returns the operator's certificate, with what it is compared with.
func (c Config) certificate() httpserver.Certificate {
	own := c.TLS
	own.BaseURL = c.BaseURL
	return own
}

// scheme returns the scheme of the public listener.
func (c Config) scheme() string {
	if c.ACME {
		return "https"
	}
	return c.TLS.Scheme()
}

// filesURL returns the address that addresses of files start with, for a listener at addr. Addresses of files
// are stored for ever, so the operator must configure the public address of a registry that other machines can
// reach. If the operator has not done that, filesURL returns "" (docs/files.md, "Addresses").
func (c Config) filesURL(addr string) string {
	own, err := netip.ParseAddrPort(addr)
	switch {
	case c.BaseURL != "":
		return strings.TrimSuffix(c.BaseURL, "/")
	case c.Sandbox, err == nil && own.Addr().Unmap().IsLoopback():
		return httpserver.OwnURL(c.scheme(), addr)
	default:
		return ""
	}
}

// listeners are the listeners of a process. A listener that the configuration does not ask for is nil.
type listeners struct{ public, admin, plain net.Listener }

// ownPorts returns the ports of the listeners if this is a sandbox that no other machine reaches: all listeners are on
// loopback addresses, and no public address says that a proxy is in front. Otherwise it returns nil.
func (c Config) ownPorts(on listeners) (ports []uint16) {
	addrs := []string{on.public.Addr().String()}
	if on.admin != nil {
		addrs = append(addrs, on.admin.Addr().String())
	}
	if c.MetricsAddr != "" {
		addrs = append(addrs, c.MetricsAddr)
	}
	for _, addr := range addrs {
		at, err := netip.ParseAddrPort(addr)
		if err != nil || !at.Addr().Unmap().IsLoopback() || at.Port() == 0 {
			return nil
		}
		ports = append(ports, at.Port())
	}
	if !c.Sandbox || c.BaseURL != "" || on.plain != nil {
		return nil
	}
	return ports
}

// listen opens the listeners.
func (c Config) listen(log *slog.Logger) (on listeners, err error) {
	for _, l := range []struct {
		at   *net.Listener
		flag string
		addr string
		want bool
	}{
		{&on.public, "--addr", c.Addr, true},
		{&on.admin, "--admin-addr", c.AdminAddr, c.AdminAddr != ""},
		{&on.plain, "--acme-addr", c.Authority.Addr, c.ACME},
	} {
		if !l.want {
			continue
		}
		if *l.at, err = command.Listen(l.flag, l.addr); err != nil {
			on.close()
			return listeners{}, err
		}
	}
	if c.PlainAddr != "" {
		if on.plain, err = command.Listen("--plain-addr", c.PlainAddr); err != nil {
			log.Warn("plain HTTP is not redirected", "error", err)
			on.plain = nil
		}
	}
	return on, nil
}

func (on listeners) close() {
	for _, l := range []net.Listener{on.public, on.admin, on.plain} {
		if l != nil {
			l.Close()
		}
	}
}

// start starts the services and the control socket on an open data directory, and returns the gateway. It starts
// the search service only with c.Search. For everything that it has started, it adds a function to the list,
// even if it then returns an error.
func (c Config) start(
	ctx context.Context, p process, admin net.Listener, opened *closing.List,
) (*gateway.Server, error) {
	authConfig := c.auth(p)
	authConfig.Admin, authConfig.AdminTrustedProxies = admin, c.TrustedProxies
	authConfig.AdminServing = c.Serving(nil, nil)
	forConsole := &later{}
	authConfig.Assets = httpserver.InProcess(forConsole)
	forSearch := &later{}
	if c.Search {
		authConfig.Search = httpserver.InProcess(forSearch)
	}
	var status atomic.Pointer[observer]
	authConfig.Problems = func(ctx context.Context) ([]string, error) { return status.Load().problems(ctx) }
	auth, err := authsvc.New(ctx, authConfig)
	if err != nil {
		return nil, err
	}
	opened.Add(auth.Close)
	toAuth := httpserver.InProcess(auth.Handler())
	kept := gateway.NewAnswers(c.Memory)
	toAssets := c.assets(p, toAuth)
	toAssets.Changing = kept.Change
	forFiles := &later{}
	toAssets.Files = httpserver.InProcess(forFiles)
	assets, err := assetsvc.New(ctx, toAssets)
	if err != nil {
		return nil, err
	}
	opened.Add(assets.Close)
	forConsole.set(assets.Handler())
	if err := durable.SyncDirectory(c.Data); err != nil { // the stores may have created files just now
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if err := finishFirstStart(c.Data); err != nil {
		return nil, err
	}
	toEdge := c.gateway(p, toAuth, assets.Handler())
	toEdge.Answers, toEdge.Warnings = kept, assets.Warnings
	place, err := placeOf(c.Data)
	if err != nil {
		return nil, err
	}
	files, err := filesvc.New(ctx, c.files(p, place, httpserver.InProcess(assets.Handler())))
	if err != nil {
		return nil, err
	}
	opened.Add(files.Close)
	forFiles.set(files.Handler())
	toEdge.Files = files.Handler()
	if c.Search {
		toEdge.Search = forSearch
	}
	edge, err := gateway.New(ctx, toEdge)
	if err != nil {
		return nil, err
	}
	opened.Add(edge.Close)
	observer := p.observer
	observer.audit = auth.CheckAudit
	observer.parts = []part{
		{"gateway", edge.Handler()}, {"assetsvc", assets.Handler()},
		{"authsvc", auth.Handler()}, {"filesvc", files.Handler()},
	}
	if c.Search {
		found, err := searchsvc.New(ctx, c.search(p, edge.Handler()))
		if err != nil {
			return nil, err
		}
		opened.Add(found.Close)
		forSearch.set(found.Handler())
		observer.parts = append(observer.parts, part{"searchsvc", found.Handler()})
	}
	status.Store(&observer)
	snapshots := map[string]snapshot{
		assetsFile: assets.Snapshot, tokensFile: auth.Snapshot, filesFile: files.Snapshot,
	}
	control := controlSocket{c.Data, snapshots, auth.AdminKey, assets.MakeSnapshot, observer.look}
	return edge, serveControl(ctx, control, p.log, opened)
}

// files returns the configuration of the file service. The argument `place` says where the bytes of files are.
func (c Config) files(p process, place string, assets http.RoundTripper) filesvc.Config {
	return filesvc.Config{
		Store:   "file:" + filepath.Join(c.Data, filesFile),
		Bytes:   place,
		Spool:   c.Data,
		Assets:  assets,
		Secrets: p.secrets,
		BaseURL: p.filesURL,
		Limits:  c.Files,
		Draw:    c.Draw,
		Timeout: c.Timeout,
		Log:     p.log.With(httpserver.ServiceName, "filesvc"), Telemetry: p.telemetry,
	}
}

// search returns the configuration of the search service. The search service reads the feed through the
// gateway, as it would from another machine.
func (c Config) search(p process, edge http.Handler) searchsvc.Config {
	var keys []string
	for _, key := range p.logKeys {
		keys = append(keys, key.Public().String())
	}
	return searchsvc.Config{
		Of: "http://registry", Transport: httpserver.InProcessStream(edge), LogKeys: keys,
		Dir:      filepath.Join(c.Data, searchDirectory),
		Synonyms: c.Synonyms, CodeLists: c.CodeLists, Links: c.Links,
		Memory: c.Memory, Places: p.places,
		Log: p.log.With(httpserver.ServiceName, "searchsvc"), Telemetry: p.telemetry,
	}
}

// later is a handler that is set after it is already in use. Until then it answers 503.
type later struct{ handler atomic.Pointer[http.Handler] }

func (l *later) set(h http.Handler) { l.handler.Store(&h) }

func (l *later) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := l.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// Check returns everything that is wrong with the configuration, and prints warnings. It opens nothing.
func (c Config) Check(warnings io.Writer) error {
	log := slog.New(slog.DiscardHandler)
	return errors.Join(c.validate(log), c.certificate().Check(warnings), private.Print(warnings, c.places()...))
}

// places returns the directories of the data, each of which may be a volume of its own.
func (c Config) places() []string {
	all := []string{c.Data}
	for _, name := range []string{filesDirectory, snapshotDirectory, searchDirectory, certificateDirectory} {
		all = append(all, filepath.Join(c.Data, name))
	}
	return all
}

// validate reports everything that is wrong with the configuration. For values that are known only later it
// uses a made-up secret and empty handlers.
func (c Config) validate(log *slog.Logger) error {
	_, badData := isNew(c.Data)
	badPlain := errs.If(c.PlainAddr != "" && (c.TLS.Cert == "" || !strings.HasPrefix(c.BaseURL, "https://")),
		"--plain-addr needs --tls-cert, and --base-url with https")
	if c.ACME {
		badPlain = c.validateACME()
	}
	keys, policy, err := c.LogFiles.Read()
	p := process{secrets: keyring.Blank(), log: log, logPolicy: policy, logKeys: keys}
	if len(keys) == 0 {
		p.logPolicy = nil // the key is in the data directory, or is made there
	}
	toNobody := httpserver.InProcess(http.NotFoundHandler())
	return errors.Join(
		errs.In(badData, "--data"),
		errs.If(c.MaxBody == 0 || c.Timeout == 0, "--max-body and --timeout must be greater than 0"),
		errs.If(c.Synonyms != "" && !c.Search, "--synonyms needs --search"),
		errs.If(c.Staff.Issuer != "" && c.AdminAddr == "", "--oidc-issuer needs --admin-addr, got %q", c.Staff.Issuer),
		badPlain, err,
		c.auth(p).Validate(),
		c.assets(p, toNobody).Validate(),
		c.files(p, filepath.Join(c.Data, filesDirectory), toNobody).Validate(),
		c.gateway(p, toNobody, http.NotFoundHandler()).Validate(),
		c.search(p, http.NotFoundHandler()).Validate(),
	)
}

func (c Config) auth(p process) authsvc.Config {
	return authsvc.Config{
		Store:     "file:" + filepath.Join(c.Data, tokensFile),
		Secrets:   p.secrets,
		Sandbox:   c.Sandbox,
		KeysFile:  c.KeysFile,
		Staff:     c.Staff,
		Timeout:   c.Timeout,
		Log:       p.log.With(httpserver.ServiceName, "authsvc"),
		Telemetry: p.telemetry,

		TransferLifetime: c.TransferLifetime,
		BaseURL:          cmp.Or(c.BaseURL, p.ownURL),
	}
}

func (c Config) assets(p process, auth http.RoundTripper) assetsvc.Config {
	zone, _ := config.Zone(c.Zone) // the method `validate` has checked c.Zone
	return assetsvc.Config{
		Store:      "file:" + filepath.Join(c.Data, assetsFile),
		Auth:       auth,
		Secrets:    p.secrets,
		LogKeys:    p.logKeys,
		LogPolicy:  p.logPolicy,
		Zone:       zone,
		AssetTypes: c.AssetTypes,
		CodeLists:  c.CodeLists,
		BaseURL:    p.filesURL,
		Hide:       c.Hide,
		Sandbox:    c.Sandbox,
		MaxBody:    c.MaxBody,
		Memory:     c.Memory,
		Timeout:    c.Timeout,
		Places:     p.places,
		Log:        p.log.With(httpserver.ServiceName, "assetsvc"),
		Telemetry:  p.telemetry,
		Webhooks:   c.Webhooks,
		Snapshot:   c.Snapshot,

		SnapshotDir: filepath.Join(c.Data, snapshotDirectory),
	}
}

func (c Config) gateway(p process, auth http.RoundTripper, assets http.Handler) gateway.Config {
	return gateway.Config{
		Assets:    assets,
		Auth:      auth,
		Secrets:   p.secrets,
		ServerID:  c.ServerID,
		BaseURL:   c.BaseURL,
		OwnURL:    p.ownURL,
		MaxBody:   c.MaxBody,
		Memory:    c.Memory,
		Timeout:   c.Timeout,
		Limits:    c.Limits.OrDefault(c.Sandbox),
		Places:    p.places,
		Log:       p.log.With(httpserver.ServiceName, "gateway"),
		Telemetry: p.telemetry,

		TrustedProxies: c.TrustedProxies,
		Settings:       c.Settings,
	}
}
