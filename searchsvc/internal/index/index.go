// Package index keeps the assets of a feed in files of scorch, the index of bleve, and
// answers searches from them (docs/search.md).
//
// Scorch stores terms with the sets of assets that have them, replaces assets atomically, merges its files, and
// survives a kill at any moment. This package evaluates searches itself. It works on whole sets, and counts
// facets in columns, so the time of a search hardly depends on the number of assets that it finds.
package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	bleve "github.com/blevesearch/bleve_index_api"
	"golang.org/x/sync/errgroup"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/fault"
	"asset-registry/shared/replica"
)

// ErrInterrupted is returned for a change that is made after Interrupt.
var ErrInterrupted = errors.New("the index is being closed")

// ErrDamaged is returned for an index that must be removed and built anew.
var ErrDamaged = errors.New("the index is damaged, or of another format")

const (
	batchSize     = 2000    // assets of one batch
	batchBytes    = 8 << 20 // maximum size of the assets in a batch, in bytes; it limits the time that a batch takes
	mostUnstored  = 16      // batches that may wait until they are on the disk
	analysers     = 2       // goroutines that make the terms of a batch
	storeWithin   = 30 * time.Second
	persistPause  = 500     // milliseconds between two writes to the disk
	mostMerged    = 250_000 // maximum number of assets of a merged file; merging it takes some seconds
	mostOfASize   = 3       // files of about one size that are not merged; each file costs each search time
	prefixSegment = "segment/"
)

var (
	stateKey  = []byte("state")
	formatKey = []byte("format")
)

// Index is an open index. Any number of goroutines may search it, but only one goroutine may change it. It implements
// replica.Store.
type Index struct {
	dir     string
	scorch  *scorch.Scorch
	queue   *bleve.AnalysisQueue
	merges  merges
	unsaved chan struct{}
	closing chan struct{} // closed once the index takes no further changes
	close   sync.Once
	failed  atomic.Pointer[error] // the newest failure to write to the disk
	damaged atomic.Pointer[error] // set if the index must be built anew

	synonyms *meaning.Synonyms
	names    codenames.Lists // supplied by the operator

	refreshing sync.Mutex // held by the refresh that is running
	mu         sync.Mutex
	state      replica.State
	view       *view // nil until the first Refresh
}

// Open opens the index in a directory. It creates the directory and the index if they do not exist. The argument
// `synonyms` is for the second tries of a search that found nothing. The argument `names` has the names of the
// codes that facets show. The error wraps ErrDamaged if the index must be removed.
func Open(dir string, synonyms *meaning.Synonyms, names codenames.Lists) (x *Index, err error) {
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the index: %w", err)
	}
	x = &Index{
		dir: dir, synonyms: synonyms, names: names, queue: bleve.NewAnalysisQueue(analysers),
		unsaved: make(chan struct{}, mostUnstored), closing: make(chan struct{}),
	}
	defer func() { // scorch panics on some damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	if err := x.open(); err != nil {
		if x.scorch == nil { // otherwise Close has closed the queue
			x.queue.Close()
		}
		return nil, err
	}
	return x, nil
}

func (x *Index) open() error {
	if err := boltfile.Verify(filepath.Join(x.dir, "root.bolt")); err != nil {
		return openFailed(err)
	}
	watch(x.dir, x)
	opened, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path": x.dir,
		// Searches find a batch immediately, but scorch writes it to the disk a little later. Each batch
		// contains its position, so a kill loses the newest batches and their positions together
		// (docs/search.md, Q4).
		"unsafe_batch":           true,
		"bolt_timeout":           "1s",
		"asyncErrorCallbackName": errorCallback,
		"scorchPersisterOptions": map[string]any{"PersisterNapTimeMSec": persistPause},
		"scorchMergePlanOptions": map[string]any{"MaxSegmentSize": mostMerged, "MaxSegmentsPerTier": mostOfASize},
	}, x.queue)
	if err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	if err := opened.Open(); err != nil {
		return openFailed(err)
	}
	x.scorch = opened.(*scorch.Scorch)
	if err := x.readState(); err != nil {
		return errors.Join(err, x.Close())
	}
	return nil
}

// openFailed returns the error of Open. The error wraps ErrDamaged if neither the system nor another process caused
// the failure.
func openFailed(err error) error {
	for _, other := range []error{syscall.ENOSPC, syscall.EACCES, syscall.EMFILE, syscall.EROFS, syscall.ENOMEM} {
		if errors.Is(err, other) {
			return fmt.Errorf("open the index: %w", err)
		}
	}
	if errors.Is(err, boltfile.ErrInUse) || err.Error() == "timeout" { // bbolt's text for a file that is in use
		return errors.New("open the index: another process has it open: stop the registry or the service that uses it")
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// readState reads the stored state. If the index is new, it stores the format.
func (x *Index) readState() error {
	reader, err := x.scorch.Reader()
	if err != nil {
		return err
	}
	defer reader.Close()
	snapshot, err := snapshotOf(reader)
	if err != nil {
		return err
	}
	if err := verifyFiles(snapshot); err != nil {
		return err
	}
	stored, err := reader.GetInternal(formatKey)
	if err != nil {
		return err
	}
	docs, err := reader.DocCount()
	if err != nil {
		return err
	}
	if stored == nil && docs == 0 {
		return x.setFormat(indexFormat)
	}
	if string(stored) != indexFormat {
		return fmt.Errorf("%w: its format is %q, want %q", ErrDamaged, stored, indexFormat)
	}
	text, err := reader.GetInternal(stateKey)
	if err != nil || text == nil {
		return err
	}
	if err := json.Unmarshal(text, &x.state); err != nil {
		return fmt.Errorf("%w: its state: %w", ErrDamaged, err)
	}
	return nil
}

// setFormat stores the format, and waits until it is on the disk.
func (x *Index) setFormat(format string) error {
	batch, done := bleve.NewBatch(), make(chan struct{})
	batch.SetInternal(formatKey, []byte(format))
	batch.SetPersistedCallback(func(error) { close(done) })
	if err := x.scorch.Batch(batch); err != nil {
		return fmt.Errorf("%w: %w", replica.ErrNotStored, err)
	}
	select {
	case <-done:
		return nil
	case <-time.After(storeWithin):
		return fmt.Errorf("%w: the disk is too slow", replica.ErrNotStored)
	}
}

// Interrupt stops the current change after its next asset, and makes further changes fail.
func (x *Index) Interrupt() { x.close.Do(func() { close(x.closing) }) }

// Close closes the index. No search may be running.
func (x *Index) Close() error {
	x.publish(nil)
	unwatch(x.dir)
	err := x.scorch.Close()
	x.queue.Close()
	return err
}

// State implements replica.Store.
func (x *Index) State() replica.State {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state
}

// Damage returns the reason for which the index must be built anew, or nil.
func (x *Index) Damage() error {
	if err := x.damaged.Load(); err != nil {
		return *err
	}
	return nil
}

// damage remembers that the index must be built anew. It returns the reason as an error.
func (x *Index) damage(reason any) error {
	err := fmt.Errorf("%w: %v", ErrDamaged, reason)
	x.damaged.CompareAndSwap(nil, &err)
	return err
}

// Loaded implements replica.Store.
func (x *Index) Loaded() (map[string]bool, error) {
	reader, err := x.scorch.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	loaded := map[string]bool{}
	snapshot, err := snapshotOf(reader)
	if err != nil {
		return nil, err
	}
	for key := range snapshot.Internal() {
		if hash, ok := strings.CutPrefix(key, prefixSegment); ok {
			loaded[hash] = true
		}
	}
	return loaded, nil
}

// Apply implements replica.Store. Once it returns, searches find the changes, except while the first load lasts.
func (x *Index) Apply(c replica.Change) error {
	if err := x.Damage(); err != nil {
		return err
	}
	if err := x.putAll(c); err != nil {
		return err
	}
	x.mu.Lock()
	x.state = c.State
	x.mu.Unlock()
	if c.State.Loading || !c.State.Complete {
		return nil
	}
	return x.Refresh()
}

// putAll makes a change in batches. The last batch also has the state. While scorch takes a batch, the next one
// is prepared.
func (x *Index) putAll(c replica.Change) error {
	parts := batches(c.Entries)
	var making errgroup.Group
	for i, part := range parts {
		batch := bleve.NewBatch()
		err := x.put(batch, part, c.State.Loading)
		if i == len(parts)-1 {
			err = errors.Join(err, x.putState(batch, c))
		}
		if err := errors.Join(err, making.Wait()); err != nil {
			return err
		}
		making = errgroup.Group{}
		making.Go(func() error { return x.batch(batch) })
	}
	return making.Wait()
}

// batches splits entries into batches. It returns at least one batch.
func batches(entries []replica.Entry) (parts [][]replica.Entry) {
	begin, size := 0, 0
	for i, e := range entries {
		if i > begin && (i-begin == batchSize || size+len(e.JSON) > batchBytes) {
			parts = append(parts, entries[begin:i])
			begin, size = i, 0
		}
		size += len(e.JSON)
	}
	return append(parts, entries[begin:])
}

// put adds entries to a batch. Several goroutines prepare the entries.
func (x *Index) put(batch *bleve.Batch, entries []replica.Entry, loading bool) error {
	adds := make([]func(*bleve.Batch), len(entries))
	var workers errgroup.Group
	for n := range analysers {
		workers.Go(func() (err error) {
			for i := n; i < len(entries) && err == nil; i += analysers {
				adds[i], err = x.operation(entries[i], loading)
			}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	for _, add := range adds {
		add(batch)
	}
	return nil
}

// operation returns a function that adds an entry to a batch.
func (x *Index) operation(e replica.Entry, loading bool) (add func(*bleve.Batch), err error) {
	select {
	case <-x.closing:
		return nil, ErrInterrupted
	default:
	}
	if !loading && x.isNewer(e) { // while a snapshot is being loaded, the index never has a newer state
		return func(*bleve.Batch) {}, nil
	}
	a, err := parse(e)
	if err != nil {
		return nil, err
	}
	if !isFound(e, a) {
		return func(b *bleve.Batch) { b.Delete(e.ID) }, nil
	}
	terms, hit, err := a.fields(e.Position)
	if err != nil {
		return nil, fmt.Errorf("index asset %s: %w", e.ID, err)
	}
	made := newEntry(e.ID, terms, hit, a.pictures())
	return func(b *bleve.Batch) { b.Update(made) }, nil
}

// putState adds two things to a batch: the state, and the hashes of the snapshot files that were read for the
// change.
func (x *Index) putState(batch *bleve.Batch, c replica.Change) error {
	text, err := json.Marshal(c.State)
	if err != nil {
		return err
	}
	batch.SetInternal(stateKey, text)
	for _, hash := range c.Segments {
		batch.SetInternal([]byte(prefixSegment+hash), []byte{})
	}
	if c.State.Loading || !x.State().Loading {
		return nil
	}
	loaded, err := x.Loaded()
	for hash := range loaded {
		batch.DeleteInternal([]byte(prefixSegment + hash))
	}
	return err
}

// batch hands a batch to scorch. It waits while too many batches are not on the disk yet.
func (x *Index) batch(b *bleve.Batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = x.damage(r)
		}
	}()
	timeout := time.NewTimer(storeWithin)
	defer timeout.Stop()
	select {
	case x.unsaved <- struct{}{}:
	case <-x.closing:
		return ErrInterrupted
	case <-timeout.C:
		reason := errors.New("the disk is too slow")
		if failed := x.failed.Load(); failed != nil {
			reason = *failed
		}
		return fmt.Errorf("%w: %w", replica.ErrNotStored, reason)
	}
	b.SetPersistedCallback(func(error) { <-x.unsaved })
	if err := x.scorch.Batch(b); err != nil {
		<-x.unsaved
		return fmt.Errorf("%w: %w", replica.ErrNotStored, err)
	}
	return nil
}

// Refresh replaces the view, so that searches find everything that was applied before.
func (x *Index) Refresh() (err error) {
	x.refreshing.Lock()
	defer x.refreshing.Unlock()
	defer func() {
		if r := recover(); r != nil {
			err = x.damage(r)
		}
	}()
	reader, err := x.scorch.Reader()
	if err != nil {
		return err
	}
	snapshot, err := snapshotOf(reader)
	if err != nil {
		return errors.Join(err, reader.Close())
	}
	v, err := newView(snapshot, x.acquire(), &x.merges)
	if err != nil {
		return errors.Join(err, reader.Close())
	}
	v.names = x.names
	x.publish(v)
	return nil
}

func snapshotOf(reader bleve.IndexReader) (*scorch.IndexSnapshot, error) {
	snapshot, ok := reader.(*scorch.IndexSnapshot)
	if !ok {
		return nil, fmt.Errorf("the index has readers of the type %T", reader)
	}
	return snapshot, nil
}

// publish replaces the view by v.
func (x *Index) publish(v *view) {
	x.mu.Lock()
	old := x.view
	x.view = v
	x.mu.Unlock()
	if old != nil {
		old.release()
	}
}

// acquire returns the view, or nil if there is no view yet. The caller must release the view.
func (x *Index) acquire() *view {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.view != nil {
		x.view.refs.Add(1)
	}
	return x.view
}

// isNewer reports whether the index has a later state of an asset than the entry has.
func (x *Index) isNewer(e replica.Entry) bool {
	v := x.acquire()
	if v == nil {
		return false
	}
	defer v.release()
	position, ok := v.positionOf(e.ID)
	return ok && position > e.Position
}

// Position returns two results: the position up to which the view has all changes, and the number of assets in
// the view.
func (x *Index) Position() (at client.Position, assets int64) {
	v := x.acquire()
	if v == nil {
		return client.Position{}, 0
	}
	defer v.release()
	return v.position, v.assets
}

// Newest returns the later of two positions: the position of the newest change in the view, and the position up
// to which the view has all changes. For an empty view, it returns 0.
func (x *Index) Newest() (int64, error) {
	v := x.acquire()
	if v == nil {
		return 0, nil
	}
	defer v.release()
	newest, err := replica.State{Position: v.position}.Upto()
	for i := range v.parts {
		for n, position := range v.parts[i].positions {
			if deleted := v.parts[i].deleted; position > newest && (deleted == nil || !deleted.Contains(uint32(n))) {
				newest = position
			}
		}
	}
	return newest, err
}

// Search answers a question as search.Searcher requires. It returns a fault.Unavailable before the first Refresh.
func (x *Index) Search(ctx context.Context, q search.Query) (result search.Result, err error) {
	v := x.acquire()
	if v == nil {
		return search.Result{}, fault.New(fault.Unavailable, fault.URL, "search", "The index is being built.")
	}
	defer v.release()
	defer func() {
		if r := recover(); r != nil {
			err = x.damage(r)
		}
	}()
	return v.search(ctx, q, x.synonyms)
}
