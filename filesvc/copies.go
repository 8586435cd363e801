package filesvc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/filesvc/internal/boltstore"
	"asset-registry/filesvc/internal/copier"
	"asset-registry/filesvc/internal/dirstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/filesvc/internal/httpapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
)

// Names inside the directory of the copies.
const (
	copiesFile      = "files.db" // file of the metadata
	copiesDirectory = "files"    // directory of the bytes
)

const (
	retryCopies   = 2 * time.Second  // pause before a failed file is fetched again; it doubles each time
	removalsEvery = 15 * time.Second // pause between two readings of the removals
)

// CopiedAssets is a copy of the assets of a registry. It is safe for concurrent use.
type CopiedAssets = copier.Assets

// CopiesConfig configures Copies. All fields except MaxFile are required.
type CopiesConfig struct {
	Dir       string            // directory of the copies; created if it does not exist
	Of        string            // address of the registry, or of a mirror of it
	Transport http.RoundTripper // for requests to Of
	UserAgent string
	Assets    CopiedAssets
	MaxFile   int64 // largest file, in bytes; 0: DefaultMaxFile
}

// Copies keeps copies of the files of another registry, and serves them (docs/files.md, "Mirrors"). It is safe
// for concurrent use, but only one call of Run or CatchUp may run at a time.
type Copies struct {
	store  *boltstore.Store
	copier *copier.Copier
}

// OpenCopies opens the copies in the directory c.Dir.
func OpenCopies(c CopiesConfig) (*Copies, error) {
	c.MaxFile = cmp.Or(c.MaxFile, DefaultMaxFile)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the copies of files: %w", err)
	}
	store, err := boltstore.OpenCopies(filepath.Join(c.Dir, copiesFile))
	if err != nil {
		return nil, fmt.Errorf("open the metadata of the copies of files: %w", err)
	}
	bytes, err := dirstore.Open(filepath.Join(c.Dir, copiesDirectory))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the copies of files: %w", err), store.Close())
	}
	return &Copies{store, copier.New(copier.Config{
		Metadata: store, Bytes: bytes, Assets: c.Assets, MaxFile: c.MaxFile, Retry: retryCopies,
		Every: removalsEvery, Now: time.Now,
		Source: copier.Source{
			HTTP: httpclient.New(c.Transport), URL: strings.TrimSuffix(c.Of, "/"), UserAgent: c.UserAgent,
			Pace: httpserver.DownloadPace,
		},
	})}, nil
}

// Run copies the files that assets name, and applies removals, until ctx is done. After each round it calls the
// function `copied` or `removed` with the error of the round, or with nil. The copy of the assets must be complete.
func (c *Copies) Run(ctx context.Context, copied, removed func(error)) {
	c.copier.Run(ctx, copied, removed)
}

// CatchUp copies all files that the assets name now, and applies the removals. If a file cannot be copied, it
// copies the other files and then returns an error.
func (c *Copies) CatchUp(ctx context.Context) error { return c.copier.CatchUp(ctx) }

// Unread returns the time since the removals of the registry were last read to their end.
func (c *Copies) Unread() time.Duration { return c.copier.Unread() }

// Copied returns the number of files that were copied since OpenCopies, and the number of their bytes.
func (c *Copies) Copied() (files, bytes int64) {
	return c.copier.Counts.Copied.Load(), c.copier.Counts.Bytes.Load()
}

// Check reads the bytes of all files, and compares them with their SHA-256. It returns the faults that it finds.
func (c *Copies) Check(ctx context.Context) (done Checked, faults []error) {
	for after := ""; ; {
		page, err := c.store.Page(ctx, after, movePage)
		if err != nil || len(page) == 0 {
			if err != nil {
				faults = append(faults, err)
			}
			return done, faults
		}
		for _, f := range page {
			after = f.ID
			switch f.State {
			case file.Removed:
				done.Removed++
			case file.Stored:
				if err := checkBytes(ctx, c.copier.Bytes, f, true); err != nil {
					faults = append(faults, err)
					continue
				}
				done.Files++
				done.Bytes += f.Size
			default:
				faults = append(faults, fmt.Errorf("file %s: it was not copied yet", f.ID))
			}
		}
	}
}

// Handler returns the handler of requests that read files. The secrets verify the identities of callers, which
// a service of the registry has signed.
func (c *Copies) Handler(secrets keyring.Ring, timeout time.Duration, log *slog.Logger, t *telemetry.Telemetry) (
	http.Handler, error,
) {
	signer, err := identity.NewSigner(secrets, time.Now)
	if err != nil {
		return nil, err
	}
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "filesvc", Log: log, LogLevel: slog.LevelDebug, Timeout: timeout, TimeoutOf: httpapi.TimeoutOf, Telemetry: t,
		Ready: c.store.Ready,
	})
	httpapi.New(httpapi.Config{
		Files: c.copier.Files, Now: time.Now, Log: log, MayServe: c.copier.MayServe, Documents: c.documents,
	}).Route(engine, signer)
	return engine, nil
}

// documents returns all versions of the documents of an asset, as a JSON list, or a fault.
func (c *Copies) documents(_ context.Context, _, asset string) ([]byte, error) {
	text, err := c.copier.Assets.Text(asset)
	if err != nil {
		return nil, fmt.Errorf("read asset %s: %w", asset, err)
	}
	if text == nil {
		return nil, fault.New(fault.NotFound, fault.URL, "asset_id", "Not Found")
	}
	var has struct {
		Documents json.RawMessage `json:"documents"`
	}
	err = json.Unmarshal(text, &has)
	return has.Documents, errs.In(err, "read asset %s", asset)
}

// Measure registers the metrics of the copies. The function `silence` unregisters them.
func (c *Copies) Measure(meter metric.Meter) (silence func()) {
	observed := telemetry.Observe(meter)
	copied := observed.Counter("registry.mirror.files.copied", "{file}", "Files that a mirror has copied.")
	bytes := observed.Counter("registry.mirror.files.bytes", "By", "Bytes of the files that a mirror has copied.")
	refused := observed.Counter("registry.mirror.files.refused", "{answer}",
		"Answers of the registry that were not the file that its document describes.")
	removed := observed.Counter("registry.mirror.files.removed", "{file}",
		"Removals of files that a mirror has learned from its registry.")
	missing := observed.Gauge("registry.mirror.files.missing", "{file}", "Files that a mirror could not copy so far.")
	unread := observed.Seconds("registry.mirror.files.unread",
		"Time since a mirror last read the removals of files to their end.")
	counts := &c.copier.Counts
	return observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(copied, counts.Copied.Load())
		o.ObserveInt64(bytes, counts.Bytes.Load())
		o.ObserveInt64(refused, counts.Refused.Load())
		o.ObserveInt64(removed, counts.Removed.Load())
		o.ObserveInt64(missing, int64(c.copier.Missing()))
		o.ObserveFloat64(unread, c.Unread().Seconds())
	})
}

// Close closes the copies.
func (c *Copies) Close() error { return c.store.Close() }
