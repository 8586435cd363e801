package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

// Load is the load that CheckFeed puts on a store.
type Load struct {
	Seed      uint64 // seed of the random choices; the order of the goroutines still varies
	Writers   int
	Followers int
	Changes   int // least number of acknowledged changes
	Assets    int // number of assets that the writers share

	// Patience is the longest time that may pass between the acknowledgement of a change and its appearance in
	// the feed. Use 0 for a single store. Several stores need more, because each waits for the open batches of
	// the others.
	Patience time.Duration
}

// Report is the result of CheckFeed.
type Report struct {
	Changes    int      // acknowledged changes
	Pages      int      // pages that followers have read
	Checks     int      // comparisons that were made
	Violations []string // sentences; they start with F1 to F5 (about the feed), or with R1 or R2 (about the record)
}

// String returns the counts of the report as one line.
func (r Report) String() string {
	return fmt.Sprintf("%d changes, %d pages, %d checks, %d violations", r.Changes, r.Pages, r.Checks,
		len(r.Violations))
}

// CheckFeed lets writers change assets while followers read the feed in all modes and in both directions. It
// compares the pages of the followers with the positions that the writers have got, and reports violations of F1
// to F5, R1 and R2 (registry.Store).
func CheckFeed(t *testing.T, s registry.Store, l Load) Report {
	t.Helper()
	c := &checker{store: s, load: l, listed: map[string]int64{}}
	for i := range l.Assets {
		r := registry.Record{ID: NewID(), Listed: i%5 != 0, Test: i%4 == 0, Body: []byte(`{}`)}
		c.assets = append(c.assets, r)
	}
	var writers, followers sync.WaitGroup
	for i := range l.Writers {
		writers.Go(func() { c.write(t.Context(), rand.New(rand.NewPCG(l.Seed, uint64(i)))) })
	}
	for i := range l.Followers {
		f := &follower{
			checker: c,
			random:  rand.New(rand.NewPCG(l.Seed, uint64(1000+i))),
			mode:    registry.Mode(i % 3),
			backs:   i/3%2 == 1,
			seen:    map[place]bool{},
		}
		followers.Go(func() { f.follow(t.Context()) })
	}
	var record []registry.Revision
	followers.Go(func() { c.walk(t.Context(), rand.New(rand.NewPCG(l.Seed, 3000))) })
	followers.Go(func() { record = c.followRecord(t.Context(), rand.New(rand.NewPCG(l.Seed, 2000))) })
	writers.Wait()
	c.finished.Store(true)
	followers.Wait()
	c.checkAcknowledgements()
	c.checkRecord(t.Context(), record)
	return c.report
}

type checker struct {
	store    registry.Store
	load     Load
	assets   []registry.Record // records that the writers pass to Create
	ticks    atomic.Int64      // logical clock, which ticks at the start and at the end of each change
	done     atomic.Int64      // number of acknowledged changes
	finished atomic.Bool       // all writers have ended

	mu     sync.Mutex
	acks   []ack
	listed map[string]int64 // an acknowledged position at which an asset is listed; the keys are ids of assets
	report Report
}

// ack is an acknowledged change.
type ack struct {
	id         string
	position   int64
	begun, end int64 // the time of the logical clock (ticks) at the start and at the end of the change
}

func (c *checker) violation(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.report.Violations) < 20 {
		c.report.Violations = append(c.report.Violations, fmt.Sprintf(format, args...))
	}
}

func (c *checker) count(pages, checks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Pages += pages
	c.report.Checks += checks
}

// write creates and changes assets until enough changes are acknowledged.
func (c *checker) write(ctx context.Context, random *rand.Rand) {
	for c.done.Load() < int64(c.load.Changes) {
		a := c.assets[random.IntN(len(c.assets))]
		change := c.store.Create
		current, err := c.store.Get(ctx, a.ID, registry.AnySize)
		if err == nil {
			a, change = current, c.store.Replace
			a.Listed = a.Listed || random.IntN(3) == 0
		} else if !errors.Is(err, registry.ErrNotFound) {
			c.violation("get %s: %v", a.ID, err)
			return
		}
		// For some writes, the context ends before or during the write.
		patience, leave := context.WithCancel(ctx)
		if random.IntN(20) == 0 {
			go leave()
		}
		begun := c.ticks.Add(1)
		position, err := change(patience, a)
		end := c.ticks.Add(1)
		leave()
		switch {
		case err == nil:
			c.done.Add(1)
			c.mu.Lock()
			c.acks = append(c.acks, ack{a.ID, position, begun, end})
			if a.Listed && c.listed[a.ID] == 0 {
				c.listed[a.ID] = position
			}
			c.mu.Unlock()
			if a.Listed {
				c.checkPrompt(ctx, a, position)
			}
		case errors.Is(err, registry.ErrStale), errors.Is(err, registry.ErrExists), errors.Is(err, context.Canceled):
		default:
			c.violation("change %s: %v", a.ID, err)
			return
		}
	}
}

// walk reads the whole list again and again until the writers have ended. Each walk must find all assets that
// were in the list when the walk began.
func (c *checker) walk(ctx context.Context, random *rand.Rand) {
	for !c.finished.Load() {
		begin, err := c.store.Page(ctx, registry.HorizonQuery())
		if err != nil {
			c.violation("page: %v", err)
			return
		}
		want := map[string]bool{}
		c.mu.Lock()
		for id, position := range c.listed {
			if position <= begin.Upto {
				want[id] = true
			}
		}
		c.mu.Unlock()
		count := len(want)
		for offset := int64(0); ; {
			page, err := c.store.Page(ctx, registry.Query{Offset: offset, Limit: 1 + random.IntN(30), Mode: registry.All})
			if err != nil {
				c.violation("page: %v", err)
				return
			}
			if len(page.Entries) == 0 {
				break
			}
			for _, e := range page.Entries {
				delete(want, e.ID)
			}
			offset = page.Entries[len(page.Entries)-1].Position
		}
		c.count(0, count)
		for id := range want {
			c.violation("Walk: %s was in the list when a walk began, but the walk did not find it", id)
		}
	}
}

// patiencePause is the time between two searches for a change in the feed.
const patiencePause = 10 * time.Millisecond

// checkPrompt checks F5: an acknowledged change must be in the feed within Patience, unless the asset has changed
// again.
func (c *checker) checkPrompt(ctx context.Context, a registry.Record, position int64) {
	for begun := time.Now(); ; time.Sleep(patiencePause) {
		page, err := c.store.Page(ctx, registry.Query{Offset: position - 1, Limit: 1, Mode: registry.All})
		if err != nil {
			c.violation("page: %v", err)
			return
		}
		c.count(0, 1)
		entries := page.Entries
		if len(entries) == 1 && entries[0].Position == position && entries[0].ID == a.ID {
			return
		}
		now, err := c.store.Get(ctx, a.ID, registry.AnySize)
		switch {
		case err == nil && now.Position > position:
			return
		case err != nil || now.Position < position || time.Since(begun) > c.load.Patience:
			c.violation("F5: %s was acknowledged at %d and is now at %d (%v), but the feed has %v there",
				a.ID, position, now.Position, err, entries)
			return
		}
	}
}

// checkAcknowledgements checks F3: positions must be unique, and a change that began after another had ended must
// have a higher position.
func (c *checker) checkAcknowledgements() {
	c.report.Changes = len(c.acks)
	byBegin := slices.SortedFunc(slices.Values(c.acks), func(a, b ack) int { return cmp.Compare(a.begun, b.begun) })
	byEnd := slices.SortedFunc(slices.Values(c.acks), func(a, b ack) int { return cmp.Compare(a.end, b.end) })
	at := map[int64]string{}
	var highest ack // the change with the highest position among those that had ended before the change `a` began
	for _, a := range byBegin {
		for len(byEnd) > 0 && byEnd[0].end < a.begun {
			if byEnd[0].position > highest.position {
				highest = byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		c.report.Checks += 2
		if a.position <= highest.position {
			c.violation("F3: %s got %d after %s had got %d", a.id, a.position, highest.id, highest.position)
		}
		if other, taken := at[a.position]; taken {
			c.violation("F3: %s and %s both got %d", a.id, other, a.position)
		}
		at[a.position] = a.id
	}
}

// place is an entry that a follower has seen.
type place struct {
	id       string
	position int64
}

// follower is a client that reads the whole feed.
type follower struct {
	*checker
	random *rand.Rand
	mode   registry.Mode
	backs  bool // the follower starts at the newest entry, and reads the older entries at the end
	seen   map[place]bool
	oldest int64 // the follower has seen every entry above this position
}

// follow reads page after page until the writers have ended and the feed has no
// more entries.
func (f *follower) follow(ctx context.Context) {
	var offset int64
	if f.backs {
		newest := f.page(ctx, registry.Query{Limit: 1 + f.random.IntN(20), Descending: true})
		if len(newest.Entries) > 0 {
			offset = newest.Entries[0].Position
			f.oldest = newest.Entries[len(newest.Entries)-1].Position - 1
		}
	}
	for {
		last := f.finished.Load()
		page := f.page(ctx, registry.Query{Offset: offset, Limit: 1 + f.random.IntN(30)})
		if page.Upto > offset {
			offset = page.Upto
			f.lookBack(ctx, offset)
		}
		if len(page.Entries) == 0 && last {
			break
		}
	}
	f.checkAll(ctx, offset)
	if !f.backs {
		return
	}
	for before := f.oldest + 1; ; { // now the older entries
		entries := f.page(ctx, registry.Query{Offset: before, Limit: 50, Descending: true}).Entries
		if len(entries) == 0 {
			break
		}
		before = entries[len(entries)-1].Position
	}
	f.oldest = 0
	f.checkAll(ctx, offset)
}

// page reads a page and adds its entries to those that the follower has seen. It checks F2, F4 and the order of the
// entries.
func (f *follower) page(ctx context.Context, q registry.Query) registry.FeedPage {
	q.Mode = f.mode
	page, err := f.store.Page(ctx, q)
	if err != nil {
		f.violation("page: %v", err)
		return registry.FeedPage{}
	}
	entries := page.Entries
	f.count(1, 2*len(entries))
	if len(entries) > 0 && !q.Descending && page.Upto < entries[len(entries)-1].Position {
		f.violation("F1: a page is complete up to %d only, but goes up to %d", page.Upto, entries[len(entries)-1].Position)
	}
	before, ids := q.Offset, map[string]bool{}
	for _, e := range entries {
		switch {
		case ids[e.ID]:
			f.violation("F2: %s is twice on one page", e.ID)
		case before != 0 && (e.Position < before) != q.Descending || e.Position == before:
			f.violation("F3: %d follows %d on a page", e.Position, before)
		}
		before, ids[e.ID] = e.Position, true
		f.seen[place{e.ID, e.Position}] = true
	}
	if len(entries) > 0 {
		e := entries[f.random.IntN(len(entries))]
		if now, err := f.store.Get(ctx, e.ID, registry.AnySize); err != nil || now.Position < e.Position {
			f.violation("F4: the feed had %s at %d, but Get then returned %d, %v", e.ID, e.Position, now.Position, err)
		}
	}
	return page
}

// lookBack checks F1 for a random range below the given offset: the follower must have seen every entry in it.
func (f *follower) lookBack(ctx context.Context, offset int64) {
	from := max(f.oldest, offset-f.random.Int64N(5000))
	page, err := f.store.Page(ctx, registry.Query{Offset: from, Limit: 1000, Mode: f.mode})
	if err != nil {
		f.violation("page: %v", err)
	}
	f.checkSeen(page.Entries, offset)
}

// checkAll checks F1 and F2 for all entries up to the given offset.
func (f *follower) checkAll(ctx context.Context, offset int64) {
	ids := map[string]bool{}
	for from := f.oldest; ; {
		page, err := f.store.Page(ctx, registry.Query{Offset: from, Limit: 1000, Mode: f.mode})
		if err != nil {
			f.violation("page: %v", err)
		}
		entries := page.Entries
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			if ids[e.ID] {
				f.violation("F2: %s is twice in the feed", e.ID)
			}
			ids[e.ID] = true
		}
		f.checkSeen(entries, offset)
		from = entries[len(entries)-1].Position
	}
}

func (f *follower) checkSeen(entries []registry.Entry, offset int64) {
	for _, e := range entries {
		if e.Position <= offset && !f.seen[place{e.ID, e.Position}] {
			f.violation("F1: %s appeared at %d after a follower had read up to %d", e.ID, e.Position, offset)
		}
	}
	f.count(1, len(entries))
}
