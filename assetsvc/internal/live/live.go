// Package live watches the feed for its followers (docs/architecture.md, "Live feed"). For any number of
// followers, it reads each change from the store only once, and encodes the change only once for each selection
// of the feed. Without followers, it reads nothing.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/follow"
	"asset-registry/shared/sleep"
)

const (
	pauseLeast = 10 * time.Millisecond  // pause between two reads, while assets change
	pauseMost  = 100 * time.Millisecond // pause between two reads, after some time without changes
	readWithin = 5 * time.Second        // longest time for a read of the feed
	readLimit  = 1000                   // maximum number of entries of a read
	readBytes  = 1 << 20                // maximum number of bytes of assets in a read
	selections = 96                     // maximum number of selections that can be followed at the same time
	leastRing  = 4 * follow.MaxData     // least size of a ring, in bytes
)

// ErrTooMany is returned if too many selections are followed.
var ErrTooMany = errors.New("too many selections of the feed are followed")

// Feed is the feed that a Watcher reads (registry.Registry).
type Feed interface {
	List(ctx context.Context, q registry.Query) (registry.FeedPage, error)
}

// Selection says which assets of the feed a follower sees, and in which form.
type Selection struct {
	Version string
	Mode    registry.Mode
	Fields  string // value of the parameter opt_fields; "": no fields
	Terms   bool   // entries have the terms that filters look at (follow.Entry)
}

// Encode appends an entry in the form of a selection, as JSON in one line.
type Encode func(dst []byte, e registry.Entry) ([]byte, error)

// Watcher watches the feed. It is safe for concurrent use.
type Watcher struct {
	feed      Feed
	print     func(position int64) string // prints a position as an offset
	ringBytes int
	failures  *failurelog.Log
	ctx       context.Context
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu       sync.Mutex
	followed map[Selection]*followed
	watching bool // the goroutine that runs the method `watch` exists
}

// followed is a selection with at least one follower.
type followed struct {
	Selection
	ring      *follow.Ring
	encode    Encode
	followers int // guarded by Watcher.mu
}

// New returns a Watcher, which prints offsets with the function `print`. The argument `memory` is the largest number of
// bytes that all its rings hold together. If it is less than a few MiB, the rings may hold a few MiB.
func New(feed Feed, print func(position int64) string, memory int64, log *slog.Logger) *Watcher {
	w := &Watcher{
		feed: feed, print: print, ringBytes: max(int(memory/selections), leastRing),
		failures: failurelog.New(log, "the feed cannot be watched"), followed: map[Selection]*followed{},
	}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Close stops the watching. Rings that followers still hold get no more entries.
func (w *Watcher) Close() {
	w.mu.Lock() // no watch starts after this
	w.stop()
	w.mu.Unlock()
	w.running.Wait()
}

// Join returns the ring with the messages of a selection. Soon after the call, a new ring starts at the newest
// position of the feed. The caller must call the function `leave` once.
func (w *Watcher) Join(s Selection, encode Encode) (ring *follow.Ring, leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.followed[s]
	if f == nil {
		if len(w.followed) == selections {
			return nil, nil, ErrTooMany
		}
		f = &followed{Selection: s, ring: follow.NewRing(w.ringBytes), encode: encode}
		w.followed[s] = f
	}
	f.followers++
	if !w.watching && w.ctx.Err() == nil {
		w.watching = true
		w.running.Go(w.watch)
	}
	return f.ring, sync.OnceFunc(func() { w.leave(f) }), nil
}

func (w *Watcher) leave(f *followed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.followers--; f.followers == 0 {
		delete(w.followed, f.Selection)
	}
}

// current returns the selections that are followed now. If no selection is followed, it also notes that the goroutine
// that runs the method `watch` ends.
func (w *Watcher) current() []*followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching = len(w.followed) > 0
	return slices.Collect(maps.Values(w.followed))
}

// watch reads the feed as long as somebody follows it.
func (w *Watcher) watch() {
	upto, pause := int64(-1), pauseLeast
	for {
		all := w.current()
		if len(all) == 0 {
			return
		}
		now, err := w.step(all, upto)
		if err != nil && w.ctx.Err() == nil {
			w.failures.Failed(err)
		}
		switch {
		case err != nil:
			pause = min(2*pause, 10*pauseMost)
		case now > upto:
			pause = pauseLeast
		default:
			pause = min(pause+pause/8+1, pauseMost)
		}
		upto = max(upto, now)
		if !sleep.For(w.ctx, pause) {
			return
		}
	}
}

// step reads the entries after a position, adds them to the rings, and returns the position up to which it has
// read. A negative position stands for the end of the feed.
func (w *Watcher) step(all []*followed, after int64) (upto int64, err error) {
	ctx, cancel := context.WithTimeout(w.ctx, readWithin)
	defer cancel()
	q := registry.Query{Offset: after, Limit: readLimit, Mode: registry.All}
	if after < 0 {
		q = registry.HorizonQuery()
	}
	if slices.ContainsFunc(all, func(f *followed) bool { return f.Fields != "" || f.Terms }) {
		q.Bodies = readBytes
	}
	page, err := w.feed.List(ctx, q)
	if err != nil {
		return after, err
	}
	if after < 0 {
		after = page.Upto
	}
	var faults []error
	for _, f := range all {
		if _, started := f.ring.Upto(); !started {
			f.ring.Restart(after, w.print(after))
		}
		faults = append(faults, w.pass(f, page))
	}
	return page.Upto, errors.Join(faults...)
}

// pass adds a page to the ring of a selection. It leaves out an entry that is too large or cannot be encoded;
// followers then read this entry from a page.
func (w *Watcher) pass(f *followed, page registry.FeedPage) (fault error) {
	var entries []*follow.Entry
	flush := func() {
		if len(entries) > 0 {
			last := entries[len(entries)-1].Position
			f.ring.Append(entries, last, w.print(last))
			entries = nil
		}
	}
	for _, e := range page.Entries {
		if f.Mode != registry.All && e.Test != (f.Mode == registry.Test) {
			continue
		}
		made, err := f.entry(e, w.print)
		if err != nil {
			fault = fmt.Errorf("encode asset %s: %w", e.ID, err)
		}
		if made == nil {
			flush()
			f.ring.Skip(e.Position, w.print(e.Position))
			continue
		}
		entries = append(entries, made)
	}
	f.ring.Append(entries, page.Upto, w.print(page.Upto))
	return fault
}

// entry returns an entry, in the form of a selection, for the ring of that selection. It returns nil for an
// entry that is too large, and after an error.
func (f *followed) entry(e registry.Entry, print func(int64) string) (*follow.Entry, error) {
	made := &follow.Entry{Position: e.Position}
	if f.Terms {
		var err error
		if made.Terms, err = assetfilter.Terms(e.Body); err != nil {
			return nil, err
		}
	}
	if f.Fields == "" {
		e.Body = nil
	}
	data, err := f.encode(nil, e)
	if err != nil || len(data) > follow.MaxData {
		return nil, err
	}
	made.Data = follow.AppendEntry(make([]byte, 0, len(data)+64), e.Position, print(e.Position), data)
	return made, nil
}
