// Package copier keeps copies of the files of another registry, its upstream (docs/files.md, "Mirrors"). A copy
// of the upstream's assets says which files exist. The package trusts the upstream as little as possible: the
// upstream may send anything, never stop sending, or send nothing.
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
	// Changes calls the function `visit` for each asset that changed after a position, in the order of positions.
	// It stops when the function returns false. The text is valid only during the call.
	Changes(after int64, visit func(position int64, id string, text []byte) bool) error
	// Text returns the text of an asset, or nil if the copy does not have the asset.
	Text(id string) ([]byte, error)
}

// Metadata is a store of the metadata of the copies. Here, a stored naming says that an asset names a file, or
// has named it before.
type Metadata interface {
	file.Files
	file.Readings
	file.Awaited
}

// Config configures a Copier. All fields are required.
type Config struct {
	Metadata Metadata
	Bytes    file.Bytes
	Assets   Assets
	Source   Source
	MaxFile  int64         // largest file, in bytes
	Retry    time.Duration // pause before a file that could not be copied is fetched again; it doubles each time
	Every    time.Duration // pause between two readings of the removals
	Now      func() time.Time
}

// Counts has the totals of the work that a Copier has done.
type Counts struct {
	Copied  atomic.Int64 // copied files
	Bytes   atomic.Int64 // bytes of the copied files
	Refused atomic.Int64 // answers of the upstream that did not have the right file
	Removed atomic.Int64 // files that the upstream has taken down
}

// Copier copies files. It is safe for concurrent use, but only one call of Run or CatchUp may run at a time.
type Copier struct {
	Config
	Files  *file.Service // the service that serves the copies
	Counts Counts

	position int64                     // the documents of all assets up to this position were read
	known    atomic.Pointer[time.Time] // when the removals were last read to their end; with a monotonic time

	turns    chan struct{}
	fetching sync.WaitGroup
	mu       sync.Mutex
	underway map[string]bool
	failed   map[string]failure // files that could not be copied
	missed   bool               // more files have failed than the map of failed files may hold
}

// failure says why a file could not be copied, and when it is fetched again.
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
	copier.known.Store(new(c.Now()))
	return copier
}

const (
	atOnce     = 4         // files that are fetched at the same time
	page       = 200       // metadata, names of bytes or namings that are read together
	batch      = 100       // assets that are read together
	batchBytes = 8 << 20   // bytes of these assets; the last asset may exceed it
	mostFailed = 10_000    // failed files that are remembered; if there are more, all documents are read again later
	mostFaults = 10        // errors of a round that its error shows
	mark       = `"sha256` // an asset without this text names no file that the upstream keeps
)

// sumForm matches a SHA-256 in hexadecimal digits.
var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// errContradiction is returned if documents give different hashes or sizes for one file.
var errContradiction = errors.New("two documents have different hashes of one file")

// named returns the files of the upstream to which the documents of an asset refer. A file has no SHA-256 if it is not
// copied, because the copier does not accept the SHA-256 or the size in its document. If the text is not an asset,
// named returns no files.
func (c *Copier) named(text []byte) (found []file.File) {
	if !bytes.Contains(text, []byte(mark)) {
		return nil
	}
	documents, err := filelink.Documents(text)
	if err != nil {
		c.Counts.Refused.Add(1)
	}
	for _, d := range documents {
		id, isKept := d.File()
		switch {
		case !isKept:
		case sumForm.MatchString(d.SHA256) && d.Size >= 0 && d.Size <= c.MaxFile:
			found = append(found, file.File{ID: id, SHA256: d.SHA256, Size: d.Size})
		default:
			found = append(found, file.File{ID: id})
		}
	}
	return found
}

// isSame reports whether two files have the same id, hash and size.
func isSame(a, b file.File) bool { return a.ID == b.ID && a.SHA256 == b.SHA256 && a.Size == b.Size }

// want stores that the asset with this id refers to the file f. It reports whether the bytes of the file are missing.
func (c *Copier) want(ctx context.Context, asset string, f file.File) (isMissing bool, err error) {
	if err := c.name(ctx, file.Naming{File: f.ID, Asset: asset}); err != nil || f.SHA256 == "" {
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

// name stores a naming. Each start of the copier reads all assets again, so most namings are already stored. For these,
// name writes nothing.
func (c *Copier) name(ctx context.Context, n file.Naming) error {
	// The namings between `before` and `n` differ from `n` only in the last hexadecimal digit. So there are at most 15
	// such namings.
	before := file.Naming{File: n.File, Asset: n.Asset[:len(n.Asset)-1]}
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

// isNamed reports whether an asset of the copy names a file now, with the SHA-256 and the size of f if f has them. If
// the argument `settle` is true, it deletes the namings of assets that no longer name the file. Only the goroutine
// that calls Copier.want may set `settle`.
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
			text, err := c.Assets.Text(n.Asset)
			if err != nil {
				return false, err
			}
			named := slices.DeleteFunc(c.named(text), func(other file.File) bool { return other.ID != f.ID })
			if slices.ContainsFunc(named, func(other file.File) bool { return f.SHA256 == "" || isSame(other, f) }) {
				return true, nil
			}
			if settle && len(named) == 0 {
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

// MayServe returns a fault if a file must not be served now. A file may be served if an asset of the copy refers to the
// file, and the bytes of the file are copied.
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

// Unread returns the time since the removals were last read to their end.
func (c *Copier) Unread() time.Duration { return c.Now().Sub(*c.known.Load()) }

// Missing returns how many files could not be copied so far.
func (c *Copier) Missing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.failed)
}

// readRemovals reads the removals of the upstream, and applies each page before it reads the next one. A removal that
// cannot be applied stops no other. If any fails, the removals do not count as read.
func (c *Copier) readRemovals(ctx context.Context) error {
	var faults []error
	seen := 0
	for after, more := "", true; more; {
		var ids []string
		var err error
		ids, more, err = c.Source.removed(ctx, after)
		if seen += len(ids); err == nil && seen > mostRemoved {
			err = fmt.Errorf("%w: it has more than %d removals", errAnswer, mostRemoved)
		}
		if err != nil {
			return fmt.Errorf("read the removals: %w", errors.Join(append(faults, err)...))
		}
		for _, id := range ids {
			if err := c.remove(ctx, id); err != nil && len(faults) < mostFaults {
				faults = append(faults, fmt.Errorf("remove file %s: %w", id, err))
			}
			after = id
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	c.known.Store(new(c.Now()))
	return nil
}

// remove takes a file down. It first notes the removal beside the bytes, so that the next process also knows it. It
// does nothing if the copy does not have the file and its assets do not name it. If they name it later, a later
// reading of the removals finds it.
func (c *Copier) remove(ctx context.Context, id string) error {
	f, err := c.Metadata.Get(ctx, id)
	if errors.Is(err, file.ErrNotFound) {
		f = file.File{ID: id, Touched: c.now()}
		var named bool
		if named, err = c.isNamed(ctx, f, false); !named {
			return err
		}
	}
	if err != nil || f.State == file.Removed {
		return err
	}
	f.State = file.Removed
	if err := c.Bytes.NoteRemoval(ctx, f); err != nil {
		return err
	}
	isNew, err := c.Files.RemoveNoted(ctx, f)
	if isNew {
		c.Counts.Removed.Add(1)
	}
	return err
}
