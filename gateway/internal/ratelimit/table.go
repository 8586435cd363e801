package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/ulule/limiter/v3"
)

// shards is the number of parts of the table, each with its own lock.
const shards = 64

const (
	// sweepAbove is the number of entries from which a part drops idle ones.
	sweepAbove = 256
	// mostEntries bounds the entries of all parts, so that a flood of requests from ever
	// new addresses cannot fill the memory.
	mostEntries = 1 << 20
)

// table finds the entry of a key.
type table struct {
	seed  maphash.Seed
	parts [shards]part
	most  int // entries of a part
}

type part struct {
	mu      sync.Mutex
	entries map[Key]*entry
	sweepAt int // number of entries at which the next sweep comes
}

// entry is what this process knows of a key. To take an entry's lock is allowed
// while holding its part's lock, never the other way round.
type entry struct {
	mu      sync.Mutex
	gone    bool     // removed from the table
	windows []window // by rate: what this process has admitted
	rates   []limiter.Rate
	loan    loan     // of a Borrower only
	reserve []window // by rate: what was admitted from the reserve; nil: nothing yet
}

func newTable() *table {
	t := &table{seed: maphash.MakeSeed(), most: mostEntries / shards}
	for i := range t.parts {
		t.parts[i] = part{entries: map[Key]*entry{}, sweepAt: sweepAbove}
	}
	return t
}

// find returns the entry of a bucket's key, and makes one if there is none.
func (t *table) find(b *Bucket, now int64) *entry {
	p := &t.parts[maphash.Comparable(t.seed, b.Key)%shards]
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[b.Key]; e != nil {
		return e
	}
	if len(p.entries) >= p.sweepAt {
		p.sweep(now, t.most)
	}
	e := &entry{windows: make([]window, len(b.Rates)), rates: b.Rates}
	p.entries[b.Key] = e
	return e
}

// sweep drops idle entries. If the part still has nearly the most entries that it may
// have, it also drops addresses, until an eighth of the part is free. It never drops keys and
// tenants in use.
func (p *part) sweep(now int64, most int) {
	for k, e := range p.entries {
		e.mu.Lock()
		if e.idle(now) {
			e.gone = true
			delete(p.entries, k)
		}
		e.mu.Unlock()
	}
	for k, e := range p.entries {
		if len(p.entries) < most-most/8 {
			break
		}
		if k.Name == "" {
			e.mu.Lock()
			e.gone = true
			e.mu.Unlock()
			delete(p.entries, k)
		}
	}
	p.sweepAt = max(sweepAbove, min(2*len(p.entries), most))
}

func (e *entry) idle(now int64) bool {
	for i := range e.windows {
		e.windows[i].forget(now, e.rates[i].Period)
		if e.windows[i].used > 0 {
			return false
		}
	}
	return e.loan.idle(now)
}

// lock finds and locks the entries of buckets. The buckets of every request come
// in the order of the table of policies, so two requests cannot deadlock. found
// is memory to reuse.
func (t *table) lock(buckets []Bucket, now int64, found []*entry) []*entry {
	for {
		found = found[:0]
		for i := range buckets {
			found = append(found, t.find(&buckets[i], now))
		}
		for i, e := range found {
			e.mu.Lock()
			if e.gone { // swept in between
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

// clock returns times as nanoseconds since its start.
type clock struct {
	now   func() time.Time
	start time.Time
}

func startClock(now func() time.Time) clock { return clock{now: now, start: now()} }

func (c clock) elapsed() int64 { return int64(c.now().Sub(c.start)) }
