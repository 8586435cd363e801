// Package copier keeps copies of the files of another registry, its upstream (docs/files.md,
// "Mirrors"). A copy of the upstream's assets says which files there are. The upstream is believed as
// little as possible: it may send anything, for ever, or nothing.
package copier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
)

// Assets is a copy of the assets of the upstream. It is safe for concurrent use.
type Assets interface {
	// Changes calls visit for the assets that changed after a position, in the order of their
	// positions, until it returns false. The text is valid during the call only.
	Changes(after int64, visit func(position int64, id string, text []byte) bool) error
	// Text returns the text of an asset; nil if the copy does not have it.
	Text(id string) ([]byte, error)
}

// Metadata is a store of the metadata of the copies. An awaited naming is an asset that names, or
// has named, a file.
type Metadata interface {
	file.Files
	file.Readings
	file.Awaited
}

// Config is what a Copier is made of. All fields are required.
type Config struct {
	Metadata Metadata
	Bytes    file.Bytes
	Assets   Assets
	Source   Source
	MaxFile  int64         // the most bytes of a file
	Retry    time.Duration // before a file is fetched again that could not be copied; then doubled
	Every    time.Duration // between two readings of the removals
	Now      func() time.Time
}

// Counts counts what a Copier did.
type Counts struct {
	Copied  atomic.Int64 // files
	Bytes   atomic.Int64 // of them
	Refused atomic.Int64 // answers of the upstream that were not those of the file
	Removed atomic.Int64 // files that the upstream has taken down
}

// Copier copies files. It is safe for concurrent use; only one call of Run or CatchUp may be under way.
type Copier struct {
	Config
	Files  *file.Service // serves the copies
	Counts Counts

	position int64        // the documents of the assets up to it were looked at
	known    atomic.Int64 // when the removals were last read to their end, in Unix milliseconds

	turns    chan struct{}
	fetching sync.WaitGroup
	mu       sync.Mutex
	underway map[string]bool
	failed   map[string]failure // files that could not be copied
	missed   bool               // there are more than failed can hold
}

// failure says why a file could not be copied, and when to fetch it again.
type failure struct {
	err   error
	tries int
	next  time.Time
}

// New returns a copier.
func New(c Config) *Copier {
	copier := &Copier{
		Config: c, Files: file.NewService(c.Metadata, c.Metadata, c.Bytes, file.Limits{}, c.Now),
		turns: make(chan struct{}, atOnce), underway: map[string]bool{}, failed: map[string]failure{},
	}
	copier.known.Store(c.Now().UnixMilli())
	return copier
}

const (
	atOnce     = 4         // files that are fetched at the same time
	page       = 200       // metadata, names or namings that are looked at together
	batch      = 100       // assets that are looked at together
	batchBytes = 8 << 20   // of their texts, or one asset more
	mostFailed = 10_000    // files that are remembered; beyond it all documents are looked at again
	mark       = `"sha256` // an asset without it names no file that the upstream keeps
)

// sumForm is the form of a SHA-256.
var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// errContradiction is returned for documents that say different things about one file.
var errContradiction = errors.New("two documents have different hashes of one file")

// wanted returns the files that the documents of an asset name, as far as one may want them. A text
// that is no asset names none.
func (c *Copier) wanted(text []byte) (found []file.File) {
	if !bytes.Contains(text, []byte(mark)) {
		return nil
	}
	documents, err := filelink.Documents(text)
	if err != nil {
		c.Counts.Refused.Add(1)
	}
	for _, d := range documents {
		if id, isKept := d.File(); isKept && sumForm.MatchString(d.SHA256) && d.Size >= 0 && d.Size <= c.MaxFile {
			found = append(found, file.File{ID: id, SHA256: d.SHA256, Size: d.Size})
		}
	}
	return found
}

// isSame tells whether two files have the same bytes by what is said about them.
func isSame(a, b file.File) bool { return a.ID == b.ID && a.SHA256 == b.SHA256 && a.Size == b.Size }

// want notes that an asset names a file. It tells whether the bytes are missing.
func (c *Copier) want(ctx context.Context, asset string, f file.File) (isMissing bool, err error) {
	if err := c.name(ctx, file.Naming{File: f.ID, Asset: asset}); err != nil {
		return false, err
	}
	known, err := c.Metadata.Get(ctx, f.ID)
	switch {
	case errors.Is(err, file.ErrNotFound):
		f.State, f.Named, f.Touched, f.Revision = file.Registered, true, c.now(), 1
		return true, c.Metadata.Create(ctx, f)
	case err != nil || known.State == file.Removed:
		return false, err
	case isSame(known, f):
		return known.State == file.Registered, nil
	}
	named, err := c.isNamed(ctx, known, false)
	if err != nil {
		return false, err
	}
	if named {
		return false, fmt.Errorf("file %s of asset %s: %w", f.ID, asset, errContradiction)
	}
	f.State, f.Named, f.Touched, f.Revision = file.Registered, true, c.now(), known.Revision+1
	if err := c.Metadata.Replace(ctx, f); err != nil {
		return false, err
	}
	return true, c.drop(ctx, known)
}

// name notes a naming. One that is noted costs no write, because each start looks at all assets.
func (c *Copier) name(ctx context.Context, n file.Naming) error {
	before := file.Naming{File: n.File, Asset: n.Asset[:len(n.Asset)-1]} // at most 15 come between them
	near, err := c.Metadata.Awaiting(ctx, before, 16)
	if err != nil || slices.Contains(near, n) {
		return err
	}
	return c.Metadata.Await(ctx, n)
}

func (c *Copier) now() time.Time { return c.Now().UTC().Truncate(time.Millisecond) }

// drop removes the bytes of a file.
func (c *Copier) drop(ctx context.Context, f file.File) error {
	if f.Blob == "" {
		return nil
	}
	return c.Bytes.Remove(ctx, f.Blob)
}

// isNamed tells whether an asset of the copy names a file now. With settle it forgets the assets
// that no longer do; only the goroutine that calls want may.
func (c *Copier) isNamed(ctx context.Context, f file.File, settle bool) (bool, error) {
	for after := (file.Naming{File: f.ID}); ; {
		namings, err := c.Metadata.Awaiting(ctx, after, page)
		if err != nil {
			return false, err
		}
		for _, n := range namings {
			if n.File != f.ID {
				return false, nil
			}
			names, err := c.names(n.Asset, f)
			if err != nil || names {
				return names, err
			}
			if settle {
				if err := c.Metadata.Settle(ctx, n); err != nil {
					return false, err
				}
			}
			after = n
		}
		if len(namings) < page {
			return false, nil
		}
	}
}

// names tells whether an asset of the copy names a file.
func (c *Copier) names(asset string, f file.File) (bool, error) {
	text, err := c.Assets.Text(asset)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(c.wanted(text), func(other file.File) bool { return isSame(other, f) }), nil
}

// MayServe returns a fault unless a file may be served now: an asset of the copy names it, and its
// bytes have come.
func (c *Copier) MayServe(ctx context.Context, f file.File) error {
	named, err := c.isNamed(ctx, f, false)
	switch {
	case err != nil:
		return fmt.Errorf("serve file %s: %w", f.ID, err)
	case !named:
		return fault.New(fault.NotFound, fault.URL, "doc_id", "Not Found")
	case f.State != file.Stored:
		return fault.New(fault.Unavailable, fault.URL, "mirror",
			"This mirror has no copy of the file yet; repeat the request, or ask the registry.")
	}
	return nil
}

// Unread returns how long the removals were not read to their end.
func (c *Copier) Unread() time.Duration { return c.Now().Sub(time.UnixMilli(c.known.Load())) }

// Missing returns how many files could not be copied so far.
func (c *Copier) Missing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.failed)
}
