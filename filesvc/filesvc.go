// Package filesvc is the file service. It stores the files of documents, and serves them (docs/files.md). It is
// a backend of the gateway, and accepts only requests with an identity that a service of the registry has
// signed.
package filesvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/httpapi"
	"asset-registry/filesvc/internal/picture"
	"asset-registry/filesvc/internal/s3store"
	"asset-registry/shared/closing"
	"asset-registry/shared/errs"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/upstream"
)

// Config configures a Server. Store, Bytes, Secrets, Log, and AssetsURLs or Assets are required. The tags make fields
// settings of the command filesvc.
type Config struct {
	Store string `required:"" help:"Store of the metadata: file:PATH, or the assets' MongoDB URL."`
	Bytes string `name:"data" required:"" help:"Directory of the files, which it creates, or s3+https://HOST/BUCKET."`
	Spool string `kong:"-"` // directory of uploads on their way to a bucket; "": the system's temporary directory

	AssetsURLs []string `name:"assets-url" default:"http://127.0.0.1:8081" help:"Addresses of the asset services."`

	Assets http.RoundTripper `kong:"-"` // transport to the asset service, used instead of AssetsURLs; nil: not used

	// The command reads Secrets from the file.
	SecretFile string       `required:"" help:"File with the services' secret, at least 32 bytes. Rotation: two lines."`
	Secrets    keyring.Ring `kong:"-"` // secrets for signing identities and addresses; the same in all services

	BaseURL string   `name:"base-url" help:"Public address of the registry; without it, uploads are refused."`
	Draw    []string `kong:"-"` // command that runs the function Draw in another process; nil: no pictures are made

	Timeout      time.Duration `default:"10s" help:"Longest time for a request that transfers no file."` // 0: 10 s
	StoreTimeout time.Duration `default:"2s" help:"Longest time for one operation of MongoDB."`          // 0: 2 s
	Limits       Limits        `embed:""`

	Log       *slog.Logger         `kong:"-"`
	Telemetry *telemetry.Telemetry `kong:"-"` // nil: none
	Now       func() time.Time     `kong:"-"` // nil: time.Now
}

// Limits has the limits of files and brokers. With the tags, the fields are flags of a command.
type Limits struct {
	MaxFile     int64 `default:"104857600" help:"Largest file of a document, in bytes."`
	BrokerFiles int64 `default:"107374182400" help:"The most bytes that all files of a broker have."`
	WaitingMost int64 `name:"waiting-files" default:"1000" help:"Files that a broker may register before it uploads them."`
}

// Defaults of fields of a Config that are zero. A test checks that the flags have the same defaults.
const (
	DefaultMaxFile      = 100 << 20
	DefaultBrokerFiles  = 100 << 30
	DefaultWaiting      = 1000
	DefaultTimeout      = 10 * time.Second
	DefaultStoreTimeout = 2 * time.Second // as in assetsvc
)

const (
	followEvery  = time.Second
	collectEvery = time.Hour
	retryEvery   = 5 * time.Second // pause of the collector while the removals cannot be read
)

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	_, badKind := c.kind()
	var badAssets error
	if c.Assets == nil {
		badAssets = errs.In(upstream.Check(c.AssetsURLs), "--assets-url")
	}
	return errors.Join(
		badKind, errs.In(CheckPlace(c.Bytes), "--data"),
		errs.If(IsBucket(c.Bytes) && c.Limits.MaxFile > s3store.MaxFile,
			"--max-file: a bucket takes no file with more than %d bytes", s3store.MaxFile),
		badAssets, errs.In(c.Secrets.Check(), "the registry's secret"),
		errs.If(c.Log == nil, "the log is missing"),
	)
}

func (c Config) withDefaults() Config {
	c.Limits.MaxFile = cmp.Or(c.Limits.MaxFile, DefaultMaxFile)
	c.Limits.BrokerFiles = cmp.Or(c.Limits.BrokerFiles, DefaultBrokerFiles)
	c.Limits.WaitingMost = cmp.Or(c.Limits.WaitingMost, DefaultWaiting)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, DefaultStoreTimeout)
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Telemetry = cmp.Or(c.Telemetry, &telemetry.Telemetry{})
	return c
}

// away is what the log says while the metadata cannot be reached at the start.
const away = "the metadata of the files cannot be reached; it is tried again"

// Server is a running file service.
type Server struct {
	config  Config
	store   store
	files   *file.Service
	clocks  *upstream.Clocks
	handler http.Handler

	kept     atomic.Int64              // bytes of all files when the collector last ran
	followed atomic.Pointer[time.Time] // when the follower last reached the end of the feed; with a monotonic time

	closers closing.List
}

// store is an open store of metadata.
type store interface {
	file.Files
	file.Readings
	file.Awaited
	io.Closer
	Ready(context.Context) error
}

// New opens the stores and returns a service that is ready to answer requests.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure file service: %w", err)
	}
	c = c.withDefaults()
	signer, err := identity.NewSigner(c.Secrets, c.Now)
	if err != nil {
		return nil, err
	}
	links, err := filelink.NewSigner(c.Secrets)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, clocks: upstream.NewClocks(c.Now, c.Log)}
	s.followed.Store(new(c.Now()))
	k, err := c.kind()
	if err != nil {
		return nil, err
	}
	if s.store, err = k.open(ctx, c, s.note(away)); err != nil {
		return nil, errors.Join(fmt.Errorf("open the metadata of the files: %w", err), s.Close())
	}
	s.closers.Add(s.store.Close)
	// The bytes come last, because opening them makes their directory. A directory of bytes without metadata would
	// look as if the metadata were lost.
	bytes, err := openBytes(c.Bytes, c.Spool, c.Timeout)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the bytes of the files: %w", err), s.Close())
	}
	s.files = file.NewService(s.store, s.store, bytes, file.Limits{
		FileBytes: c.Limits.MaxFile, BrokerBytes: c.Limits.BrokerFiles, Waiting: c.Limits.WaitingMost,
	}, c.Now)
	again, err := s.files.RemoveAgain(ctx)
	switch {
	case fault.KindOf(err) == fault.Unavailable: // the collector will try again
		s.files.Hold()
	case err != nil:
		return nil, errors.Join(err, s.Close())
	}
	s.tellAgain(again)
	assets, err := s.assets(signer)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.route(signer, links, assets)
	if err := s.start(context.WithoutCancel(ctx), assets); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// route makes the handler of all requests.
func (s *Server) route(signer *identity.Signer, links *filelink.Signer, assets feed) {
	c := s.config
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "filesvc", Log: c.Log, LogLevel: slog.LevelDebug, Timeout: c.Timeout, TimeoutOf: httpapi.TimeoutOf,
		Ready: s.clocks.Ready(s.store.Ready, s.store), Warnings: s.clocks.Warnings(nil), Telemetry: c.Telemetry,
	})
	httpapi.New(httpapi.Config{
		Files: s.files, Base: filelink.Base(c.BaseURL), Links: links, Now: c.Now, Log: c.Log,
		Documents: assets.documents,
	}).Route(engine, signer)
	s.handler = engine
}

// assets returns the client of the asset service.
func (s *Server) assets(signer *identity.Signer) (feed, error) {
	transport := s.config.Assets
	if transport == nil {
		pool, err := upstream.New(upstream.Config{
			Name: "assetsvc", URLs: s.config.AssetsURLs, Log: s.config.Log, Meter: s.config.Telemetry.Meter(),
			Clocks: s.clocks,
		})
		if err != nil {
			return feed{}, err
		}
		s.closers.Do(pool.Close)
		transport = pool
	}
	return newFeed(transport, signer, filelink.Base(s.config.BaseURL)), nil
}

// start starts the background goroutines.
func (s *Server) start(ctx context.Context, assets feed) error {
	follower := file.Follower{Service: s.files, Feed: assets, Awaited: s.store, Documents: assets}
	follows := s.note("files do not become public, and none is collected, because the feed cannot be read")
	collects := s.note("unused files are not collected; it is tried again")
	s.closers.Go(ctx, func(ctx context.Context) {
		follower.Run(ctx, followEvery, func(err error) {
			follows(err)
			if err == nil {
				s.followed.Store(new(s.config.Now()))
			}
		})
	})
	every := collectEvery
	if s.files.IsHeld() {
		every = retryEvery
	}
	s.closers.Go(ctx, func(ctx context.Context) { s.collect(ctx, every, collects) })
	if len(s.config.Draw) > 0 {
		draws := s.note("pictures of illustrations are missing; it is tried again")
		s.closers.Go(ctx, func(ctx context.Context) { s.files.Draw(ctx, picture.Drawer{Command: s.config.Draw}, draws) })
	}
	s.measure(s.config.Telemetry.Meter())
	return nil
}

// note returns a function that logs failures of one kind of work. It also logs when the work succeeds after failures.
func (s *Server) note(what string) func(error) {
	failures := failurelog.NewState(s.config.Log, what)
	s.closers.Do(failures.Close)
	return failures.Tell
}

// tellAgain logs how many files were removed again, because the metadata had been restored from a time before their
// removal. It logs nothing for 0 files.
func (s *Server) tellAgain(files int) {
	if files > 0 {
		s.config.Log.Warn("files were removed again, because the metadata are of before their removal", "files", files)
	}
}

// collect runs the collector until ctx is done, first after the time `every`.
func (s *Server) collect(ctx context.Context, every time.Duration, tell func(error)) {
	for begun := time.Now(); sleep.For(ctx, every); {
		done, err := s.files.Collect(ctx, func() time.Duration { return time.Since(begun) })
		if !s.files.IsHeld() {
			every = collectEvery
		}
		if ctx.Err() == nil {
			tell(err)
		}
		s.tellAgain(done.Again)
		if err == nil {
			s.kept.Store(done.Kept)
		}
		if done.Files+done.Blobs > 0 {
			s.config.Log.Info("unused files are gone", "files", done.Files, "bytes", done.Bytes, "unfinished", done.Blobs)
		}
	}
}

// Handler returns the handler of the service's requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Close stops the background goroutines and closes the store. The caller must have stopped serving requests.
func (s *Server) Close() error { return s.closers.Close() }

// measure registers the metrics of the service. Close unregisters them.
func (s *Server) measure(meter metric.Meter) {
	observed := telemetry.Observe(meter)
	behind := observed.Seconds("registry.files.behind",
		"Time since the file service last read the feed of assets to its end.")
	uploads := observed.Counter("registry.files.uploads", "{upload}",
		"Uploads by their end: stored, refused, quota (of the broker), full (no room), failed.")
	collected := observed.Counter("registry.files.collected", "{file}",
		"Files that were removed because no document names them.")
	removed := observed.Counter("registry.files.removed", "{file}",
		"Files that an administrator has removed, and those with the same bytes.")
	carried := observed.Counter("registry.files.bytes", "By", "Bytes of files that were stored (in) and sent (out).")
	unread := observed.Counter("registry.files.unread", "{reading}",
		"Readings of files that failed, because the bytes were missing, damaged or away.")
	pictures := observed.Counter("registry.files.pictures", "{file}",
		"Files of illustrations by result: made, none (no picture, or too much), or given-up.")
	counts := &s.files.Counts
	s.closers.Do(observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveFloat64(behind, s.config.Now().Sub(*s.followed.Load()).Seconds())
		o.ObserveInt64(collected, counts.Collected.Load())
		o.ObserveInt64(removed, counts.Removed.Load())
		o.ObserveInt64(unread, counts.Unread.Load())
		for result, n := range map[string]int64{
			"made": counts.Drawn.Load(), "none": counts.Undrawn.Load(), "given-up": counts.GivenUp.Load(),
		} {
			o.ObserveInt64(pictures, n, metric.WithAttributes(attribute.String("result", result)))
		}
		for direction, n := range map[string]int64{"in": counts.Received.Load(), "out": counts.Sent.Load()} {
			o.ObserveInt64(carried, n, metric.WithAttributes(attribute.String("direction", direction)))
		}
		for result, n := range map[string]int64{
			"stored": counts.Stored.Load(), "refused": counts.Refused.Load(), "quota": counts.Quota.Load(),
			"full": counts.Full.Load(), "failed": counts.Failed.Load(),
		} {
			o.ObserveInt64(uploads, n, metric.WithAttributes(attribute.String("result", result)))
		}
	}))
	s.closers.Do(telemetry.MeasureStore(meter, "files", func(context.Context) telemetry.StoreUse {
		use := telemetry.StoreUse{Size: s.kept.Load()}
		var disk syscall.Statfs_t
		if err := syscall.Statfs(s.config.Bytes, &disk); err == nil && !IsBucket(s.config.Bytes) {
			use.DiskFree, use.DiskSize = int64(disk.Bavail)*int64(disk.Bsize), int64(disk.Blocks)*int64(disk.Bsize)
		}
		return use
	}))
}
