package assetsvc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/httpapi"
	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/shared/closing"
	"asset-registry/shared/telemetry"
)

// Snapshot configures copies of all listed assets in files (docs/snapshot.md). With the tags, the fields are settings
// of a command.
type Snapshot struct {
	SnapshotInterval time.Duration `default:"1h" help:"Time between snapshots; 0: they are made on demand only."`
	SnapshotKeep     int           `default:"2" help:"Snapshots that are kept."` // 0: 2

	// Whole copies (docs/data.md) take at least four times as much disk space as the snapshots.
	WholeCopies bool `default:"true" negatable:"" help:"Make whole copies of each snapshot, for /data."`
}

// Made describes a snapshot.
type Made struct {
	Assets   int
	Segments int
	Bytes    int64 // total size of the segments
}

// String describes the snapshot in a sentence.
func (m Made) String() string {
	return fmt.Sprintf("The snapshot has %d assets in %d segments of %d bytes together.", m.Assets, m.Segments, m.Bytes)
}

var errNoDirectory = errors.New("no directory of snapshots is set")

// newKeeper returns the keeper of the snapshots of a store.
func newKeeper(store store, c Config) (*snapshot.Keeper, error) {
	return snapshot.New(store, snapshot.Options{
		Dir:      c.SnapshotDir,
		Interval: c.SnapshotInterval,
		Keep:     c.SnapshotKeep,
		Copies:   c.WholeCopies,
		Show:     httpapi.SnapshotLine(c.Zone, c.hidden()),
		Hidden:   c.hidden(),
		Now:      c.Now,
		Log:      c.Log,
		Checkpoint: func(ctx context.Context) (string, error) {
			checkpoint, err := publiclog.NewReader(store).Checkpoint(ctx)
			if errors.Is(err, publiclog.ErrUnsigned) {
				return "", nil
			}
			return string(checkpoint), err
		},
	})
}

// startSnapshots starts to make snapshots, until the list ends it.
func startSnapshots(store store, c Config, closers *closing.List) (*snapshot.Keeper, error) {
	keeper, err := newKeeper(store, c)
	if err != nil {
		return nil, err
	}
	failures, silence := measureSnapshots(c.Telemetry.Meter(), c, keeper)
	closers.Do(silence)
	closers.Go(context.Background(), func(ctx context.Context) {
		keeper.Run(ctx, func(error) { failures.Add(ctx, 1) })
	})
	return keeper, nil
}

// measureSnapshots registers metrics: the age of the newest snapshot, and the bytes of all snapshots. It returns the
// counter of failures.
func measureSnapshots(meter metric.Meter, c Config, keeper *snapshot.Keeper) (
	failures metric.Int64Counter, silence func(),
) {
	begun := time.Now()
	failures = telemetry.Counter(meter, "registry.snapshot.failures", "{failure}",
		"Snapshots that this process could not make.")
	observed := telemetry.Observe(meter)
	age := observed.Seconds("registry.snapshot.age",
		"Time since the newest snapshot was begun; without one, since this process began.")
	interval := observed.Seconds("registry.snapshot.interval",
		"Time between two snapshots; 0: they are made on demand only.")
	disk := observed.Gauge("registry.snapshot.disk", "By",
		"Bytes of all snapshots in the directory; the same at every asset service.")
	failures.Add(context.Background(), 0) // start the counter at zero: otherwise a rate misses the first event
	return failures, observed.Read(func(_ context.Context, o metric.Observer) {
		since := time.Since(begun)
		if newest, err := keeper.Newest(); err == nil {
			if old := c.Now().Sub(newest.Time()); old >= 0 { // a time in the future comes from a wrong clock
				since = old
			}
		}
		o.ObserveFloat64(age, since.Seconds())
		o.ObserveFloat64(interval, c.SnapshotInterval.Seconds())
		if bytes, err := keeper.Disk(); err == nil { // an error is ignored, because the next snapshot reports it
			o.ObserveInt64(disk, bytes)
		}
	})
}

// MakeSnapshot makes a snapshot immediately.
func (s *Server) MakeSnapshot(ctx context.Context) (Made, error) {
	if s.snapshots == nil {
		return Made{}, errNoDirectory
	}
	return makeSnapshot(ctx, s.snapshots)
}

func makeSnapshot(ctx context.Context, keeper *snapshot.Keeper) (Made, error) {
	m, err := keeper.Make(ctx)
	return Made{Assets: m.Assets, Segments: len(m.Segments), Bytes: m.Bytes}, err
}

// MakeSnapshot makes a snapshot of a store in a directory, also while services run. It uses only Store,
// StoreTimeout, SnapshotDir, Snapshot, Zone, Hide and Log of the configuration. No service may have the file of an
// embedded store open.
func MakeSnapshot(ctx context.Context, c Config) (made Made, err error) {
	if c.SnapshotDir == "" {
		return Made{}, errNoDirectory
	}
	if _, err := asset.ParseGroups(c.Hide); err != nil {
		return Made{}, err
	}
	c = c.withDefaults()
	store, err := c.openStore(ctx)
	if err != nil {
		return Made{}, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	keeper, err := newKeeper(store, c)
	if err != nil {
		return Made{}, err
	}
	return makeSnapshot(ctx, keeper)
}
