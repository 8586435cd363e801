// Package snapshot makes and keeps copies of all listed assets, in files that never
// change (docs/snapshot.md).
package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/sleep"
)

// Manifest describes a snapshot and lists its files.
type Manifest struct {
	Position   int64  `json:"position"` // position in the feed; a client with the snapshot follows the feed from here
	Begun      int64  `json:"begun"`    // µs since the Unix epoch; greater in each later snapshot
	Assets     int    `json:"assets"`
	Bytes      int64  `json:"bytes"` // total size of the segments
	Plain      int64  `json:"plain"` // total size of the lines, uncompressed
	Files      *Files `json:"files,omitempty"`
	Checkpoint string `json:"checkpoint"` // newest checkpoint of the public log; "": none
	// Hidden are the groups of fields that are hidden in the assets, sorted.
	Hidden   []asset.Group `json:"hidden,omitempty"`
	Segments []Segment     `json:"segments"` // ordered by their ranges, which together cover all ids
	// Copies are the whole copies of the snapshot. They have a separate manifest without segments. The manifest
	// with the segments has no Copies, because it is written before the copies are made.
	Copies []Copy `json:"copies,omitempty"`
}

// Files counts the files that the documents of the assets name. Manifests of earlier versions have no Files.
type Files struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

// Segment is one file with the assets of a range of ids.
type Segment struct {
	From   string `json:"from"`   // lowest id of the range
	To     string `json:"to"`     // highest id of the range
	SHA256 string `json:"sha256"` // hash of the file, in hexadecimal digits; also the name of the file
	Bytes  int64  `json:"bytes"`  // size of the file
	Plain  int64  `json:"plain"`  // size of the lines, uncompressed
	Assets int    `json:"assets"`
}

// Copy is one file with all assets that a search finds (docs/data.md, "Whole copies").
type Copy struct {
	Name   string `json:"name"`   // name of the copy's form (export.Whole)
	SHA256 string `json:"sha256"` // hash of the file, in hexadecimal digits
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
}

// Store is the store from which a snapshot is made (storetest.RangeStore).
type Store interface {
	Page(ctx context.Context, q registry.Query) (registry.FeedPage, error)
	Range(ctx context.Context, q registry.RangeQuery) (registry.RangePage, error)
}

// Options configure a Keeper. Dir, Show, Now and Log are required.
type Options struct {
	Dir      string
	Keep     int           // number of snapshots to keep; 0: 2
	Interval time.Duration // time between two snapshots that Run makes; 0: Run makes none
	Copies   bool          // also make whole copies of each snapshot

	// Show appends an asset in the form of a line, without the line break.
	Show func(dst []byte, e registry.Entry) ([]byte, error)
	// Hidden are the groups of fields that Show leaves out, sorted. The keeper ignores snapshots that were made
	// with other groups.
	Hidden []asset.Group
	// Checkpoint returns the newest checkpoint of the public log, or "" if the log has none. The field is nil if there
	// is no log.
	Checkpoint func(ctx context.Context) (string, error)
	Now        func() time.Time
	Log        *slog.Logger
}

const defaultKeep = 2

// Errors of a Keeper.
var (
	ErrNone = errors.New("there is no snapshot")
	ErrBusy = errors.New("a snapshot is being made already")
)

// Keeper makes, keeps and reads the snapshots in a directory, which other processes may use at the same time. A
// Keeper is safe for concurrent use.
type Keeper struct {
	store Store
	o     Options
	pause func(ctx context.Context, d time.Duration) error

	mu     sync.Mutex
	newest map[string]Manifest // the last result of newestIn; the keys are directories
}

// New returns a keeper, and creates the directory of the keeper if it does not exist.
func New(store Store, o Options) (*Keeper, error) {
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	k := &Keeper{store: store, o: o, pause: rest, newest: map[string]Manifest{}}
	for _, dir := range []string{k.manifests(), k.segments(), k.copies()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the snapshot directory: %w", err)
		}
	}
	return k, nil
}

func (k *Keeper) manifests() string { return filepath.Join(k.o.Dir, "manifests") }
func (k *Keeper) segments() string  { return filepath.Join(k.o.Dir, "segments") }
func (k *Keeper) copies() string    { return filepath.Join(k.o.Dir, "copies") }

// rest sleeps for the duration d, or until ctx is done.
func rest(ctx context.Context, d time.Duration) error {
	if !sleep.For(ctx, d) {
		return ctx.Err()
	}
	return nil
}
