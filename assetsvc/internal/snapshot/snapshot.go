// Package snapshot makes and keeps copies of all listed assets, in files that never
// change (docs/snapshot.md).
package snapshot

import (
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

// Manifest lists the parts of a snapshot.
type Manifest struct {
	Position   int64  `json:"position"` // of the feed; a client with the snapshot follows from here
	Begun      int64  `json:"begun"`    // µs since the Unix epoch; rises from one snapshot to the next
	Assets     int    `json:"assets"`
	Bytes      int64  `json:"bytes"` // of all segments
	Plain      int64  `json:"plain"` // bytes of all lines
	Files      *Files `json:"files,omitempty"`
	Checkpoint string `json:"checkpoint"` // of the public log; "": none
	// Hidden are the groups of fields that the assets lack, sorted.
	Hidden   []asset.Group `json:"hidden,omitempty"`
	Segments []Segment     `json:"segments"` // in the order of their ranges, which cover all ids
	// Copies are the whole copies of the snapshot. Their manifest has no segments, and that of the segments has
	// no copies, because it is written before them.
	Copies []Copy `json:"copies,omitempty"`
}

// Files counts the files that the documents of the assets name. A manifest of an earlier version lacks
// it.
type Files struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

// Segment is one file with the assets of a range of ids.
type Segment struct {
	From   string `json:"from"`   // lowest id of the range
	To     string `json:"to"`     // highest id of the range
	SHA256 string `json:"sha256"` // of the file, in hexadecimal digits; its name
	Bytes  int64  `json:"bytes"`  // of the file
	Plain  int64  `json:"plain"`  // bytes of the lines
	Assets int    `json:"assets"`
}

// Copy is one file with all assets that a search finds (docs/data.md, "Whole copies").
type Copy struct {
	Name   string `json:"name"`   // of the form (export.Whole)
	SHA256 string `json:"sha256"` // of the file, in hexadecimal digits
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
}

// Store is what a snapshot is made from (storetest.RangeStore).
type Store interface {
	Page(ctx context.Context, q registry.Query) (registry.FeedPage, error)
	Range(ctx context.Context, q registry.RangeQuery) (registry.RangePage, error)
}

// Options configure a Keeper. Dir, Show, Now and Log are required.
type Options struct {
	Dir      string
	Keep     int           // manifests; 0: 2
	Interval time.Duration // between snapshots that are made unasked; 0: none are
	Copies   bool          // make whole copies of each snapshot

	// Show appends an asset as a line shows it, without a line break.
	Show func(dst []byte, e registry.Entry) ([]byte, error)
	// Hidden are the groups of fields that Show leaves out, sorted. The keeper shows no
	// snapshot with other ones.
	Hidden []asset.Group
	// Checkpoint returns the newest checkpoint of the public log, "" if there is none. Nil:
	// there is no log.
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

// Keeper makes, keeps and reads the snapshots in a directory. Other processes may use
// the same directory. It is safe for concurrent use.
type Keeper struct {
	store Store
	o     Options
	pause func(ctx context.Context, d time.Duration) error

	mu     sync.Mutex
	newest map[string]Manifest // what newestIn returned last, by directory
}

// New returns a keeper, and creates its directory unless it exists.
func New(store Store, o Options) (*Keeper, error) {
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
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

// rest sleeps for d, or until ctx is done.
func rest(ctx context.Context, d time.Duration) error {
	if !sleep.For(ctx, d) {
		return ctx.Err()
	}
	return nil
}
