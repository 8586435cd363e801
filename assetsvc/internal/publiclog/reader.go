// Package publiclog makes the public log of changes (docs/log.md) from the record of changes, and reads it.
//
// The record determines the log: its leaves are the public changes below the horizon, in the order of their
// positions. The record below the horizon never changes (R2), so every process makes the same log.
//
// A Store keeps the full parts of the tree and one Head. A process first stores the new parts. Then it replaces
// the head, unless another process has replaced the head meanwhile. All processes compute the same parts, so
// parts that were stored before a crash do no harm.
//
// A process signs only the tree of the stored head. A new head always has the same tree or a tree that continues
// it. So two different trees of the same size are never signed.
package publiclog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/errs"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// Reader reads the log up to its newest checkpoint. It keeps full parts in memory, because they never change. It is
// safe for concurrent use.
type Reader struct {
	store Store

	mu   sync.Mutex
	kept map[translog.Tile][]byte // nil: each part is read from the store
}

// mostKept is the maximum number of parts that a Reader keeps. A part has at most 256 leaves of 512 bytes, so these
// parts have 8 MiB at most.
const mostKept = 64

// NewReader returns a reader of the log in store.
func NewReader(store Store) *Reader { return &Reader{store: store, kept: map[translog.Tile][]byte{}} }

// ErrUnsigned is returned while the log has no checkpoint yet. Its cause is registry.ErrNotLogged, because no
// change is covered.
var ErrUnsigned = fmt.Errorf("the log has no checkpoint yet: %w", registry.ErrNotLogged)

// Checkpoint returns the newest signed checkpoint, or ErrUnsigned.
func (r *Reader) Checkpoint(ctx context.Context) ([]byte, error) {
	m, err := r.now(ctx)
	if err == nil && m.head.Checkpoint == nil {
		err = ErrUnsigned
	}
	return m.head.Checkpoint, err
}

// Part returns the data of a full or partial part. It returns ErrNoPart for a part that the tree does not have.
func (r *Reader) Part(ctx context.Context, tile translog.Tile) ([]byte, error) {
	if tile.IsFull() {
		return r.full(ctx, tile)
	}
	m, err := r.now(ctx)
	if err != nil {
		return nil, err
	}
	return m.ReadPart(ctx, tile)
}

// full returns the data of a full part, or ErrNoPart. If the Reader keeps too many parts, full forgets any of them.
func (r *Reader) full(ctx context.Context, tile translog.Tile) ([]byte, error) {
	r.mu.Lock()
	data, isKept := r.kept[tile]
	r.mu.Unlock()
	if isKept {
		return data, nil
	}
	data, err := r.store.LogPart(ctx, tile)
	if err != nil || r.kept == nil {
		return data, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.kept {
		if len(r.kept) < mostKept {
			break
		}
		delete(r.kept, other)
	}
	r.kept[tile] = data
	return data, nil
}

// moment is the log at one head. It implements translog.PartReader.
type moment struct {
	*Reader
	head   Head
	signed translog.Checkpoint // the newest checkpoint of the head; zero until it is read
}

// The method `now` reads the head of the log.
func (r *Reader) now(ctx context.Context) (moment, error) {
	head, err := r.store.LogHead(ctx)
	return moment{Reader: r, head: head}, errs.In(err, "read the head of the log")
}

// ReadPart returns the same as Reader.Part. A part that the tree of the head does not have is a beginning of a full
// part: the store has each full part before it has the head.
func (m moment) ReadPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	if data, there := m.head.Tree.Part(tile); there {
		return data, nil
	}
	full, err := m.full(ctx, tile.Full())
	if err != nil {
		return nil, err
	}
	return tile.Cut(full)
}

// Parts lets a Reader be used as a translog.Source.
type Parts struct{ *Reader }

func (p Parts) ReadCheckpoint(ctx context.Context) ([]byte, error) { return p.Checkpoint(ctx) }

func (p Parts) ReadPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	return p.Part(ctx, tile)
}

// damage adds the cause registry.ErrDamagedLog to an error that shows damage: parts of the log do not fit together,
// or a part is missing. It returns any other error unchanged.
func damage(err error) error {
	for _, cause := range []error{
		translog.ErrPart, translog.ErrLeaf, translog.ErrTampered, translog.ErrOrder, fs.ErrNotExist,
	} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w: %w", registry.ErrDamagedLog, err)
		}
	}
	return err
}

// Prove implements registry.Log. It returns ErrUnsigned, and errors with the causes
// registry.ErrNotLogged, registry.ErrNoLeaf and registry.ErrDamagedLog.
func (r *Reader) Prove(ctx context.Context, position int64) (translog.Proof, []byte, error) {
	m, index, leaf, err := r.find(ctx, position)
	if err != nil {
		return translog.Proof{}, nil, err
	}
	path, err := translog.Include(ctx, m.signed, index, m)
	if err != nil {
		return translog.Proof{}, nil, fmt.Errorf("prove leaf %d: %w", index, r.damaged(err))
	}
	return translog.Proof{Index: index, Path: path, Checkpoint: m.head.Checkpoint}, leaf, nil
}

// LeafAt returns the leaf with a position. It returns the same errors as Prove.
func (r *Reader) LeafAt(ctx context.Context, position int64) (leaf translog.Leaf, err error) {
	_, _, entry, err := r.find(ctx, position)
	if err != nil {
		return leaf, err
	}
	return translog.ParseLeaf(entry)
}

// damaged returns the same as the function damage. If parts are damaged, the Reader forgets those that it keeps: the
// damage may be repaired in the store.
func (r *Reader) damaged(err error) error {
	if err = damage(err); errors.Is(err, registry.ErrDamagedLog) {
		r.mu.Lock()
		defer r.mu.Unlock()
		clear(r.kept)
	}
	return err
}

// Consistent returns the proof that a checkpoint of the log continues an earlier state of the log. The argument
// `older` is the number of leaves in the earlier state (translog.Consistent).
func (r *Reader) Consistent(ctx context.Context, older int64, c translog.Checkpoint) ([]tlog.Hash, error) {
	return translog.Consistent(ctx, older, c, Parts{r})
}

// find searches the leaves of the newest checkpoint for the leaf with a position. The moment that it returns has this
// checkpoint. Positions rise from leaf to leaf, so find searches by bisection: it reads one bundle in each step. If no
// leaf has the position, find returns an error: registry.ErrNoLeaf if a leaf has a later position,
// registry.ErrNotLogged if no leaf has one.
func (r *Reader) find(ctx context.Context, position int64) (m moment, index int64, leaf []byte, err error) {
	if m, err = r.now(ctx); err != nil {
		return m, 0, nil, err
	}
	if m.head.Checkpoint == nil {
		return m, 0, nil, ErrUnsigned
	}
	if m.signed, err = translog.Unverified(m.head.Checkpoint); err != nil {
		return m, 0, nil, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	low, high := int64(0), (m.signed.Size+translog.TileWidth-1)/translog.TileWidth // numbers of bundles
	missing := registry.ErrNotLogged
	for low < high {
		middle := (low + high) / 2
		first := middle * translog.TileWidth
		bundle := translog.BundleOf(first, m.signed.Size)
		data, err := m.ReadPart(ctx, bundle)
		if err != nil {
			return m, 0, nil, fmt.Errorf("read the entries from %d: %w", first, r.damaged(err))
		}
		entries, err := translog.ParseBundle(data, bundle.Width)
		if err != nil {
			return m, 0, nil, r.damaged(err)
		}
		at, side, err := search(entries, position)
		switch {
		case err != nil:
			return m, 0, nil, r.damaged(err)
		case side == 0:
			return m, first + int64(at), entries[at], nil
		case side < 0:
			high, missing = middle, registry.ErrNoLeaf
		default:
			low = middle + 1
		}
	}
	return m, 0, nil, missing
}

// search returns the index of the entry with the given position. The result `side` is 0 if the entry is found.
// Otherwise `side` says whether the position is before (-1) or after (1) all these entries.
func search(entries [][]byte, position int64) (at, side int, err error) {
	positionOf := func(i int) int64 {
		leaf, malformed := translog.ParseLeaf(entries[i])
		err = cmp.Or(err, malformed)
		return leaf.Position
	}
	first, last := positionOf(0), positionOf(len(entries)-1)
	switch {
	case err != nil:
		return 0, 0, err
	case position < first:
		return 0, -1, nil
	case position > last:
		return 0, 1, nil
	}
	at = sort.Search(len(entries)-1, func(i int) bool { return positionOf(i) >= position })
	if positionOf(at) != position && err == nil {
		err = registry.ErrNoLeaf // the position is between two leaves
	}
	return at, 0, err
}

// Head is the state of the log. The zero Head belongs to an empty log without a checkpoint.
type Head struct {
	Version    int64         // how often the stored head was replaced
	Position   int64         // the tree has all public changes up to this position
	Tree       translog.Tree // the right edge of the tree
	Checkpoint []byte        // the newest signed checkpoint, for this tree or an earlier one; nil: none
}

// ErrNoPart is returned for a part that the log does not have. Its cause is fs.ErrNotExist (translog.PartReader).
var ErrNoPart = fmt.Errorf("the log has no such part: %w", fs.ErrNotExist)

// Store keeps the log. It is safe for concurrent use. Each method reads or changes the state at a single
// moment.
type Store interface {
	// LogHead returns the head, or the zero Head if none is stored.
	LogHead(ctx context.Context) (Head, error)
	// ExtendLog stores full parts. Then it stores the head with the version head.Version+1, if the stored head
	// has the version head.Version. It reports whether it stored the head. After an error, it is unknown whether
	// the parts and the head are stored.
	ExtendLog(ctx context.Context, head Head, parts []translog.Part) (stored bool, err error)
	// LogPart returns the data of a full part, or ErrNoPart.
	LogPart(ctx context.Context, tile translog.Tile) ([]byte, error)
}

// Record is the record of changes (registry.Store).
type Record interface {
	Changes(ctx context.Context, q registry.ChangesQuery) (registry.ChangesPage, error)
}

// Patrol verifies the stored log again and again. It checks what every reader of the log can check: all leaves, all
// parts and the root of the newest checkpoint.
type Patrol struct {
	verifier translog.Verifier
	log      Parts
	every    time.Duration
	found    atomic.Pointer[string]
}

// NewPatrol returns a patrol of the log in store, which reads each part from the store. The policy verifies
// the signatures of checkpoints. The parameter `every` is the time between two verifications.
func NewPatrol(store Store, policy *translog.Policy, every time.Duration) *Patrol {
	return &Patrol{verifier: translog.Verifier{Policy: policy}, log: Parts{&Reader{store: store}}, every: every}
}

// Damage describes the damage that the last verification has found. It returns "" if the log was not damaged.
func (p *Patrol) Damage() string {
	if found := p.found.Load(); found != nil {
		return *found
	}
	return ""
}

// Run verifies the log immediately, and then again and again until ctx is done. It calls the function `report`
// with the error of each verification that fails. The cause is registry.ErrDamagedLog if the log is damaged.
// Another error, such as one of the store, says nothing about the log, so it does not change what Damage
// returns.
func (p *Patrol) Run(ctx context.Context, report func(err error)) {
	for {
		_, err := p.verifier.Verify(ctx, slowly{p.log})
		switch err = damage(err); {
		case ctx.Err() != nil:
			return
		case err == nil || errors.Is(err, ErrUnsigned):
			p.found.Store(nil)
		default:
			if says := err.Error(); errors.Is(err, registry.ErrDamagedLog) {
				p.found.Store(&says)
			}
			report(err)
		}
		if !sleep.For(ctx, p.every) {
			return
		}
	}
}

// slowly reads parts. It pauses after each part, so that the store has time for other work.
type slowly struct{ Parts }

func (s slowly) ReadPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	began := time.Now()
	data, err := s.Parts.ReadPart(ctx, tile)
	sleep.For(ctx, rest*time.Since(began))
	return data, err
}
