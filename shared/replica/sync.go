package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry.example/client"
)

const (
	parallel  = 4        // files of a snapshot that are read at the same time
	pageLimit = 1000     // entries of a page
	batchSize = 32 << 20 // bytes of text in one transaction; the last file may exceed it
)

// Source is the registry that is copied, as client.Client calls it.
type Source struct {
	*client.Client
	Address string
	Pause   time.Duration // pause between pages, if the registry has no streams
}

// Progress says how much one run has done.
type Progress struct {
	Assets, Bytes       int64 // entries that were stored, and bytes of their text
	OfAssets, OfBytes   int64 // totals of the snapshot that the run reads; 0: the run reads the feed
	Position            client.Timestamp
	Snapshots, Segments int // snapshots that were begun, and files that were read
}

// Store is a place for a copy. One goroutine at a time calls Apply and Loaded.
type Store interface {
	// State returns the state of the copy after the last change.
	State() State
	// Apply applies a change. Each error that it returns wraps ErrNotStored. After a crash, the store may have lost the
	// last changes. It then has the state after an earlier change, and perhaps some entries of the lost changes.
	Apply(Change) error
	// Loaded returns the hashes of the snapshot files that are already in the copy.
	Loaded() (map[string]bool, error)
}

// run is one run of a synchronisation.
type run struct {
	Store
	source Source
	tell   func(Progress)
	done   Progress
	goal   int64 // position of the newest entry when the run began; the value "never" means that the run has no goal
}

// never is a position that the feed never reaches.
const never = math.MaxInt64

// CatchUp brings a copy up to the end that the registry's feed had when CatchUp was called. So CatchUp ends even if the
// feed grows fast. If the registry has a snapshot, an empty copy first gets the newest one, and then the feed after the
// snapshot. The function `tell` is called after each change of the copy.
func CatchUp(ctx context.Context, to Store, source Source, tell func(Progress)) error {
	run := &run{Store: to, source: source, tell: tell}
	var err error
	if run.goal, err = run.end(ctx); err != nil {
		return err
	}
	if state := to.State(); state.Loading || state.Position.Offset == "" && !state.Complete {
		if err := run.load(ctx); err != nil {
			return err
		}
	}
	return run.pages(ctx)
}

// Follow stores changes as they come, until ctx is done or an error occurs. Changes that wait are stored together
// (gather). CatchUp must have succeeded before. After an error, the caller may call Follow again.
func Follow(ctx context.Context, to Store, source Source, tell func(Progress)) error {
	run := &run{Store: to, source: source, tell: tell, goal: never}
	feed := run.feed()
	feed.Live = true
	read, gathered := make(chan client.Page), make(chan client.Page)
	var refused error // by the registry; the changes before it are stored
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(read)
		for page, err := range source.Follow(ctx, feed, source.Pause) {
			if err != nil {
				refused = err
				return nil
			}
			select {
			case read <- page:
			case <-ctx.Done():
				return ctx.Err()
			}
			if page.Next.ServerID != feed.Position.ServerID { // run.page refuses it, so it must be the last of its batch
				return nil
			}
		}
		return nil
	})
	group.Go(func() error {
		defer close(gathered)
		return gather(ctx, read, gathered)
	})
	group.Go(func() error { return run.take(gathered) })
	err := group.Wait()
	return run.otherData(cmp.Or(err, refused))
}

// feed returns a query for the feed after the copy's position.
func (r *run) feed() client.Feed {
	return client.Feed{
		Position: r.State().Position, Limit: pageLimit, Mode: client.AllModes, Fields: []string{"*"}, Raw: true,
	}
}

// end returns the position of the newest entry of the feed, or 0 if the feed is empty.
func (r *run) end(ctx context.Context) (int64, error) {
	page, err := r.source.Page(ctx, client.Feed{Descending: true, Limit: 1, Mode: client.AllModes})
	if err != nil {
		return 0, err
	}
	if err := r.same(page.Next); err != nil {
		return 0, err
	}
	end, err := positionOf(page.Next) // in a descending feed, this is the position of the page's last entry
	if err != nil || end > Latest() {
		return 0, fmt.Errorf("%w: the feed ends at %.50q", ErrAnswer, page.Next.Offset)
	}
	return end, nil
}

// pages stores the feed up to the goal, or up to the end of the feed. While it stores a page, it reads the next one.
func (r *run) pages(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	read, feed := make(chan client.Page), r.feed()
	group.Go(func() error {
		defer close(read)
		for page, err := range r.source.Pages(ctx, feed) {
			if err != nil {
				return r.otherData(err)
			}
			select {
			case read <- page:
			case <-ctx.Done():
				return ctx.Err()
			}
			if upto, err := positionOf(page.Next); err == nil && upto >= r.goal {
				return nil
			}
		}
		return nil
	})
	group.Go(func() error { return r.take(read) })
	return group.Wait()
}

// take stores pages until there are no more.
func (r *run) take(pages <-chan client.Page) error {
	for page := range pages {
		if err := r.page(page); err != nil {
			return err
		}
	}
	return nil
}

// positionOf returns a position in microseconds since the epoch. It is 0 before the first change.
func positionOf(p client.Position) (int64, error) { return State{Position: p}.Upto() }

// page stores a page of the feed. It returns an error in these cases:
//
//   - the entries are not in order, or the first entry is not after the copy's position;
//   - an entry is after the position of the next page;
//   - the position of the next page is before the copy's position, or in the future.
func (r *run) page(page client.Page) error {
	if err := r.same(page.Next); err != nil {
		return err
	}
	before, err1 := r.State().Upto()
	upto, err2 := positionOf(page.Next)
	if err := errors.Join(err1, err2); err != nil || upto < before || upto > Latest() {
		return fmt.Errorf("%w: after %.50q it goes on at %.50q", ErrAnswer, r.State().Position.Offset, page.Next.Offset)
	}
	c := Change{State: r.State()}
	c.State.Origin, c.State.Position = r.source.Address, page.Next
	c.State.Complete = c.State.Complete || page.Len() == 0 || upto >= r.goal
	for _, text := range page.Raw {
		e, err := parseEntry(text)
		if err != nil {
			return err
		}
		if err := e.until(upto); err != nil {
			return err
		}
		if e.Position <= before {
			return fmt.Errorf("%w: asset %s of %s is out of order", ErrEntry, e.ID, timeOf(e.Position))
		}
		before = e.Position
		c.Entries = append(c.Entries, e)
	}
	return r.store(c)
}

// The method `same` returns ErrOtherData if a position and the copy belong to different data. It returns ErrAnswer if
// the position does not name its data, because every position of a registry names them.
func (r *run) same(p client.Position) error {
	if p.ServerID == "" {
		return fmt.Errorf("%w: it has no cookie SERVER_ID", ErrAnswer)
	}
	if known := r.State().Position.ServerID; known != "" && known != p.ServerID {
		return fmt.Errorf("%w: SERVER_ID is %q there, and %q in the copy", ErrOtherData, p.ServerID, known)
	}
	return nil
}

// store applies a change, unless it changes nothing, and reports the progress.
func (r *run) store(c Change) error {
	if len(c.Entries) > 0 || len(c.Segments) > 0 || c.State != r.State() {
		if err := r.Apply(c); err != nil {
			return err
		}
	}
	r.done.Assets += int64(len(c.Entries))
	for _, e := range c.Entries {
		r.done.Bytes += int64(len(e.JSON))
	}
	r.done.Segments += len(c.Segments)
	r.done.Position = c.State.Position.Offset
	r.tell(r.done)
	return nil
}

// Bounds of the changes that Follow stores together. A store needs about as long for a few changes as for one, so a
// follower that stored each change alone would fall behind.
const (
	mostGathered = 16 << 20               // bytes of text, without the last page; pageLimit is the bound of the entries
	gatherFor    = 250 * time.Millisecond // the longest time that a change waits for others
)

// gather passes pages on, and joins those that arrive while the receiver is busy, or within gatherFor of the page that
// it passed on before. So a change after a quiet time goes on at once. When the sender closes its channel, gather
// passes on the rest.
func gather(ctx context.Context, in <-chan client.Page, out chan<- client.Page) error {
	var joined client.Page
	size, due, open := 0, false, true
	rest := time.NewTimer(0)
	defer rest.Stop()
	for some := false; open || some; some = joined.Next != (client.Position{}) {
		full := len(joined.Raw) >= pageLimit || size >= mostGathered
		from, to := in, out
		if full || !open {
			from = nil
		}
		if !some || open && !full && !due {
			to = nil
		}
		select {
		case page, more := <-from:
			if open = more; more {
				joined.Raw, joined.Next = append(joined.Raw, page.Raw...), page.Next
				size += sizeOf(page)
			}
		case to <- joined:
			joined, size, due = client.Page{}, 0, false
			rest.Reset(gatherFor)
		case <-rest.C:
			due = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func sizeOf(page client.Page) (bytes int) {
	for _, text := range page.Raw {
		bytes += len(text)
	}
	return bytes
}
