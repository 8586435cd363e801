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

// Load is what CheckFeed puts on a store.
type Load struct {
	Seed      uint64 // of all that is random but the order of goroutines
	Writers   int
	Followers int
	Changes   int // acknowledged ones at least
	Assets    int // that the writers share

	// Patience is how long an acknowledged change may take until it is in the
	// feed: of one store on its own, 0; with others, until what they began
	// before is done.
	Patience time.Duration
}

// Report is what CheckFeed found.
type Report struct {
	Changes    int      // that were acknowledged
	Pages      int      // that followers took
	Checks     int      // comparisons made
	Violations []string // of F1 to F5, each a sentence
}

// String sums the report up.
func (r Report) String() string {
	return fmt.Sprintf("%d changes, %d pages, %d checks, %d violations", r.Changes, r.Pages, r.Checks, len(r.Violations))
}

// CheckFeed has writers change assets and followers follow the feed, in all
// modes and both directions, and compares what the followers were shown with
// what the writers were told (registry.Store, F1 to F5). It sees only what any
// client of the store sees.
func CheckFeed(t *testing.T, s registry.Store, l Load) Report {
	t.Helper()
	c := &checker{store: s, load: l}
	for i := range l.Assets {
		c.assets = append(c.assets, registry.Record{ID: NewID(), Listed: i%5 != 0, Test: i%4 == 0, Body: []byte(`{}`)})
	}
	var writers, followers sync.WaitGroup
	for i := range l.Writers {
		writers.Go(func() { c.write(t.Context(), rand.New(rand.NewPCG(l.Seed, uint64(i)))) })
	}
	for i := range l.Followers {
		f := &follower{checker: c, random: rand.New(rand.NewPCG(l.Seed, uint64(1000+i))), mode: registry.Mode(i % 3), seen: map[place]bool{}}
		followers.Go(func() { f.follow(t.Context(), i/3%2 == 1) })
	}
	writers.Wait()
	c.finished.Store(true)
	followers.Wait()
	c.checkAcknowledgements()
	return c.report
}

type checker struct {
	store    registry.Store
	load     Load
	assets   []registry.Record // as they are created
	ticks    atomic.Int64      // a clock of events: one tick for each begin and end
	done     atomic.Int64      // changes acknowledged
	finished atomic.Bool       // the writers have ended

	mu     sync.Mutex
	acks   []ack
	report Report
}

// ack is a change that a writer was told of.
type ack struct {
	id         string
	position   int64
	begun, end int64 // ticks
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

// write creates and changes assets until there are enough changes.
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
		// Some callers leave at once, or while the write is under way.
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

// patiencePause is between two looks for a change.
const patiencePause = 10 * time.Millisecond

// checkPrompt checks F5: what was acknowledged is in the feed, or comes there in
// time, unless it has moved on.
func (c *checker) checkPrompt(ctx context.Context, a registry.Record, position int64) {
	for begun := time.Now(); ; time.Sleep(patiencePause) {
		entries, err := c.store.Page(ctx, registry.Query{Offset: position - 1, Limit: 1, Mode: registry.All})
		if err != nil {
			c.violation("page: %v", err)
			return
		}
		c.count(0, 1)
		if len(entries) == 1 && entries[0].Position == position && entries[0].ID == a.ID {
			return
		}
		now, err := c.store.Get(ctx, a.ID, registry.AnySize)
		switch {
		case err == nil && now.Position > position:
			return
		case err != nil || now.Position < position || time.Since(begun) > c.load.Patience:
			c.violation("F5: %s was acknowledged at %d, is at %d (%v), and the feed has %v there", a.ID, position, now.Position, err, entries)
			return
		}
	}
}

// checkAcknowledgements checks F3: positions are unique, and in the order of
// changes of which one ended before the other began.
func (c *checker) checkAcknowledgements() {
	c.report.Changes = len(c.acks)
	byBegin := slices.SortedFunc(slices.Values(c.acks), func(a, b ack) int { return cmp.Compare(a.begun, b.begun) })
	byEnd := slices.SortedFunc(slices.Values(c.acks), func(a, b ack) int { return cmp.Compare(a.end, b.end) })
	at := map[int64]string{}
	var highest ack // of those that ended before the one at hand began
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

// place is where an entry stood when it was seen.
type place struct {
	id       string
	position int64
}

// follower is one synchroniser.
type follower struct {
	*checker
	random *rand.Rand
	mode   registry.Mode
	seen   map[place]bool
	oldest int64 // it has seen the feed from here on
}

// follow takes page after page until the writers have ended and there is no
// more. With descending it starts at the newest, as synchronisers do, and turns
// forward from there.
func (f *follower) follow(ctx context.Context, descending bool) {
	var offset int64
	if descending {
		newest := f.page(ctx, registry.Query{Limit: 1 + f.random.IntN(20), Descending: true})
		if len(newest) > 0 {
			offset = newest[0].Position
			f.oldest = newest[len(newest)-1].Position - 1
		}
	}
	for {
		last := f.finished.Load()
		entries := f.page(ctx, registry.Query{Offset: offset, Limit: 1 + f.random.IntN(30)})
		if len(entries) > 0 {
			offset = entries[len(entries)-1].Position
			f.lookBack(ctx, offset)
		} else if last {
			break
		}
	}
	f.checkAll(ctx, offset)
	if !descending {
		return
	}
	for before := f.oldest + 1; ; { // the past, into which nothing comes any more
		entries := f.page(ctx, registry.Query{Offset: before, Limit: 50, Descending: true})
		if len(entries) == 0 {
			break
		}
		before = entries[len(entries)-1].Position
	}
	f.oldest = 0
	f.checkAll(ctx, offset)
}

// page takes a page, remembers it and checks what can be checked of it alone:
// order, F2 and F4.
func (f *follower) page(ctx context.Context, q registry.Query) []registry.Entry {
	q.Mode = f.mode
	entries, err := f.store.Page(ctx, q)
	if err != nil {
		f.violation("page: %v", err)
		return nil
	}
	f.count(1, 2*len(entries))
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
			f.violation("F4: the feed had %s at %d, and then it is at %d, %v", e.ID, e.Position, now.Position, err)
		}
	}
	return entries
}

// lookBack checks F1 at once: whatever lies behind the offset was seen.
func (f *follower) lookBack(ctx context.Context, offset int64) {
	from := max(f.oldest, offset-f.random.Int64N(5000))
	entries, err := f.store.Page(ctx, registry.Query{Offset: from, Limit: 1000, Mode: f.mode})
	if err != nil {
		f.violation("page: %v", err)
	}
	f.checkSeen(entries, offset)
}

// checkAll checks F1 and F2 over all the follower has passed.
func (f *follower) checkAll(ctx context.Context, offset int64) {
	ids := map[string]bool{}
	for from := f.oldest; ; {
		entries, err := f.store.Page(ctx, registry.Query{Offset: from, Limit: 1000, Mode: f.mode})
		if err != nil {
			f.violation("page: %v", err)
		}
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			if ids[e.ID] {
				f.violation("F2: %s stands twice in the feed", e.ID)
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
			f.violation("F1: %s at %d came up behind %d, which a follower had passed", e.ID, e.Position, offset)
		}
	}
	f.count(1, len(entries))
}
