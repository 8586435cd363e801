package mirror

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc"
	"asset-registry/gateway"
	"asset-registry/shared/closing"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/fair"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/logclient"
)

// waiting is the service of a mirror that cannot serve its copy yet.
type waiting struct{ handler http.Handler }

// say sets the sentence that says why nothing is served.
func (m *mirror) say(sentence string) { m.doing.Store(sentence) }

// waiting returns a service that answers 503 and says why.
func (m *mirror) waiting() daemon.Service {
	refuse := func() error {
		doing, _ := m.doing.Load().(string)
		return unready("%s", doing)
	}
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "mirror", Log: m.log, LogLevel: slog.LevelDebug, Timeout: m.config.Timeout, Edge: true,
		Ready: func(context.Context) error { return refuse() }, Telemetry: m.telemetry,
	})
	engine.NoRoute(httpserver.Handle(func(*gin.Context) error { return refuse() }))
	return waiting{engine}
}

func (w waiting) Handler() http.Handler { return w.handler }

func (waiting) Close() error { return nil }

// services are the gateway and the asset service of a copy.
type services struct {
	gateway *gateway.Server
	assets  *assetsvc.Server
}

func (s services) Handler() http.Handler { return s.gateway.Handler() }

func (s services) Drain() { s.gateway.Drain() }

func (s services) Close() error { return errors.Join(s.gateway.Close(), s.assets.Close()) }

// serve serves the copy until ctx is done or the copy is void. The argument `zone` is the time zone of the copy's
// times.
func (k *keeper) serve(ctx context.Context, zone string) (err error) {
	k.say("The mirror compares its copy with the public log.")
	secrets := keyring.Ring{make([]byte, keyring.MinLength)} // the services share this secret with no other process
	rand.Read(secrets[0])                                    // rand.Read never returns an error
	places := fair.NewPlaces()
	assets, err := k.newAssets(ctx, zone, secrets, places)
	if err != nil {
		return err
	}
	k.assets.Store(assets)
	served := k.servedBefore()
	if served {
		k.mayServe()
	}
	select {
	case <-k.compared:
	case err := <-k.void:
		return errors.Join(err, assets.Close())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), assets.Close())
	}
	if k.isBeside {
		if k.head, err = assets.Checkpoint(ctx); err == nil {
			err = k.noteServed()
		}
		return errors.Join(cmp.Or(err, errVerified), assets.Close())
	}
	if !served {
		if err := k.noteServed(); err != nil {
			return errors.Join(err, assets.Close())
		}
	}
	edge, err := k.newGateway(ctx, assets, secrets, places)
	if err != nil {
		return errors.Join(err, assets.Close())
	}
	if err := k.front.Replace(services{edge, assets}); err != nil {
		return err // never happens: closing the waiting service returns no error
	}
	k.mirror.log.Info("the copy is served")
	var working closing.List
	working.Add(func() error { return k.front.Replace(k.waiting()) })
	working.Go(ctx, func(ctx context.Context) { k.check(ctx, assets) })
	if k.files != nil {
		working.Go(ctx, k.copyFiles)
	}
	defer func() { err = errors.Join(err, working.Close()) }()
	select {
	case err := <-k.void:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check compares the assets of the copy with the copied public log until ctx is done.
func (k *keeper) check(ctx context.Context, assets *assetsvc.Server) {
	if k.config.CheckInterval == 0 {
		return
	}
	c := &checker{copied: k.copied, leaf: assets.Leaf, prove: k.source.Proof, log: k.mirror.log, count: k.count,
		isAway: func() bool { return k.fresh.Behind() > 6*askEvery }}
	k.checker.Store(c)
	defer k.checker.Store(nil)
	c.run(ctx, k.config.CheckInterval)
}

func (k *keeper) newAssets(ctx context.Context, zone string, secrets keyring.Ring, places *fair.Semaphore) (
	*assetsvc.Server, error,
) {
	c := k.config
	location, err := config.Zone(zone)
	if err != nil {
		return nil, err
	}
	source, err := logclient.NewSource(k.of.JoinPath("log").String(), k.transport)
	if err != nil {
		return nil, err
	}
	snapshots := ""
	if c.SnapshotInterval > 0 {
		snapshots = filepath.Join(c.Data, snapshotDirectory)
	}
	return assetsvc.New(ctx, assetsvc.Config{
		Mirror: &assetsvc.Mirror{
			Copy: k.copied, LogFile: filepath.Join(c.Data, logFile), LogSource: source, LogPolicy: k.policy,
			CheckLog: k.copied.compare, LogReport: k.heard,
		},
		Secrets:     secrets,
		Zone:        location,
		Memory:      c.Memory,
		Timeout:     c.Timeout,
		SnapshotDir: snapshots,
		Snapshot:    assetsvc.Snapshot{SnapshotInterval: c.SnapshotInterval, SnapshotKeep: c.SnapshotKeep},
		Places:      places,
		Log:         k.mirror.log.With(httpserver.ServiceName, "assetsvc"),
		Telemetry:   k.telemetry,
	})
}

func (k *keeper) newGateway(
	ctx context.Context, assets *assetsvc.Server, secrets keyring.Ring, places *fair.Semaphore,
) (*gateway.Server, error) {
	c := k.config
	serverID, _ := k.serverID.Load().(string)
	var files http.Handler
	if k.files != nil {
		var err error
		log := k.mirror.log.With(httpserver.ServiceName, "filesvc")
		if files, err = k.files.Handler(secrets, c.Timeout, log, k.telemetry); err != nil {
			return nil, err
		}
	}
	return gateway.New(ctx, gateway.Config{
		SearchURLs: c.SearchURL,

		Assets:   k.relay.before(assets.Handler(), k.copied.has),
		Files:    files,
		Secrets:  secrets,
		ServerID: serverID,
		BaseURL:  c.BaseURL,
		OwnURL:   httpserver.OwnURL(c.TLS.Scheme(), c.Addr),
		Memory:   c.Memory,
		Timeout:  c.Timeout,
		Limits:   c.Limits.OrDefault(false),
		Places:   places,
		Mirror:   &gateway.Mirror{Origin: c.origin(), Age: k.fresh.Behind, Fault: k.fault},
		Log:      k.mirror.log.With(httpserver.ServiceName, "gateway"),

		Telemetry:      k.telemetry,
		TrustedProxies: c.TrustedProxies,
		Settings:       c.Settings,
	})
}
