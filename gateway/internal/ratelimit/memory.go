package ratelimit

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/ulule/limiter/v3"
)

// shards is how many parts the table of entries has, each under its own lock.
const shards = 64

// sweepAbove is how many entries a part may have before it drops idle ones, and
// maxPart how many it may have at all, a million in all parts: a flood from ever
// new addresses must not fill the memory.
const (
	sweepAbove = 256
	maxPart    = 1 << 20 / shards
)

// table finds what is known of a key.
type table struct {
	seed  maphash.Seed
	parts [shards]part
}

type part struct {
	mu      sync.Mutex
	entries map[Key]*entry
	sweepAt int
}

// entry is what is known of a key. Its lock may be taken under that of its
// part, never the other way round.
type entry struct {
	mu      sync.Mutex
	gone    bool     // no longer in the table
	windows []window // what this process has let through, by rate
	rates   []limiter.Rate
	lease   lease    // of a shared store only
	kept    []window // what was let through without asking it; nil if nothing ever was
}

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	for i := range t.parts {
		t.parts[i] = part{entries: map[Key]*entry{}, sweepAt: sweepAbove}
	}
	return t
}

func (t *table) part(k Key) *part { return &t.parts[maphash.Comparable(t.seed, k)%shards] }

func (t *table) find(b *Bucket, now int64) *entry {
	p := t.part(b.Key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[b.Key]; e != nil {
		return e
	}
	if len(p.entries) >= p.sweepAt {
		p.sweep(now)
	}
	e := &entry{windows: make([]window, len(b.Rates)), rates: b.Rates}
	p.entries[b.Key] = e
	return e
}

// sweep drops the entries that nothing is known of any more and, of a part that
// is full of others all the same, an eighth of the addresses.
func (p *part) sweep(now int64) {
	for k, e := range p.entries {
		e.mu.Lock()
		if e.idle(now) {
			e.gone = true
			delete(p.entries, k)
		}
		e.mu.Unlock()
	}
	for k, e := range p.entries {
		if len(p.entries) < maxPart-maxPart/8 {
			break
		}
		if k.Name == "" {
			e.mu.Lock()
			e.gone = true
			e.mu.Unlock()
			delete(p.entries, k)
		}
	}
	p.sweepAt = max(sweepAbove, min(2*len(p.entries), maxPart))
}

func (e *entry) idle(now int64) bool {
	for i := range e.windows {
		e.windows[i].forget(now, e.rates[i].Period)
		if e.windows[i].used > 0 {
			return false
		}
	}
	return e.lease.idle(now)
}

// lock finds and locks the entries of buckets, which come in the order of the
// table of policies: so no two requests wait for each other.
func (t *table) lock(buckets []Bucket, now int64, found []*entry) []*entry {
	for {
		found = found[:0]
		for i := range buckets {
			found = append(found, t.find(&buckets[i], now))
		}
		for i, e := range found {
			e.mu.Lock()
			if e.gone { // swept meanwhile
				unlock(found[:i+1])
				found = found[:0]
				break
			}
		}
		if len(found) == len(buckets) {
			return found
		}
	}
}

func unlock(entries []*entry) {
	for _, e := range entries {
		e.mu.Unlock()
	}
}

// drop forgets all about a key.
func (t *table) drop(k Key) {
	p := t.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[k]; e != nil {
		e.mu.Lock()
		e.gone = true
		e.mu.Unlock()
		delete(p.entries, k)
	}
}

// Memory is a Store in the memory of this process.
type Memory struct {
	library
	table *table
	clock clock
}

// NewMemory returns an empty store.
func NewMemory(now func() time.Time) *Memory {
	m := &Memory{table: newTable(), clock: startClock(now)}
	m.library.store = m
	return m
}

// Take implements Store.
func (m *Memory) Take(_ context.Context, buckets []Bucket, states []State) (Verdict, error) {
	now := m.clock.elapsed()
	var few [4]*entry
	entries := m.table.lock(buckets, now, few[:0])
	defer unlock(entries)
	wait, refused := localWait(entries, buckets, now, 1)
	if wait == 0 {
		commit(entries, buckets, now)
	}
	return Verdict{States: localStates(entries, buckets, now, states, 1), Wait: wait, Refused: refused}, nil
}

// Look implements Store.
func (m *Memory) Look(_ context.Context, buckets []Bucket, states []State) ([]State, error) {
	now := m.clock.elapsed()
	var few [4]*entry
	entries := m.table.lock(buckets, now, few[:0])
	defer unlock(entries)
	localWait(entries, buckets, now, 1) // forgets what is over
	return localStates(entries, buckets, now, states, 1), nil
}

// Reset implements limiter.Store.
func (m *Memory) Reset(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	m.table.drop(libraryKey(key, rate))
	return m.Peek(ctx, key, rate)
}

// share is one gateway's part of a limit when each of several counts alone.
func share(limit, cost, gateways int64) int64 { return max(limit/gateways, min(limit, max(cost, 1))) }

// localWait tells how long a request must wait by what this process has let
// through, and which rate, counted over all buckets, lets it wait the longest.
func localWait(entries []*entry, buckets []Bucket, now, gateways int64) (wait time.Duration, refused int) {
	n := 0
	for i := range buckets {
		b := &buckets[i]
		for j := range b.Rates {
			r := &b.Rates[j]
			if w := entries[i].windows[j].wait(now, b.Cost, share(r.Limit, b.Cost, gateways), r.Period); w > wait {
				wait, refused = w, n
			}
			n++
		}
	}
	return wait, refused
}

func localStates(entries []*entry, buckets []Bucket, now int64, states []State, gateways int64) []State {
	for i := range buckets {
		b := &buckets[i]
		for j := range b.Rates {
			states = append(states, entries[i].windows[j].state(now, b.Rates[j], share(b.Rates[j].Limit, b.Cost, gateways)))
		}
	}
	return states
}

// commit counts a request as let through.
func commit(entries []*entry, buckets []Bucket, now int64) {
	for i := range buckets {
		for j := range buckets[i].Rates {
			entries[i].windows[j].add(now, buckets[i].Cost, buckets[i].Rates[j].Period)
		}
	}
}

// clock tells the time that has passed since its start, in nanoseconds.
type clock struct {
	now   func() time.Time
	start time.Time
}

func startClock(now func() time.Time) clock { return clock{now: now, start: now()} }

func (c clock) elapsed() int64 { return int64(c.now().Sub(c.start)) }
