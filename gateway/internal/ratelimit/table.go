package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/ulule/limiter/v3"
)

// shards is the number of parts of the table. Each part has its own lock.
const shards = 64

const (
	// sweepAbove is the least number of entries at which a part is swept.
	sweepAbove = 256
	// mostEntries is the maximum number of entries in all parts together. So requests from ever more new addresses
	// cannot fill the memory.
	mostEntries = 1 << 20
)

// table has the entries of keys.
type table struct {
	seed  maphash.Seed
	parts [shards]part
	most  int // maximum number of entries of one part
}

type part struct {
	mu      sync.Mutex
	entries map[Key]*entry
	sweepAt int // number of entries at which the part is swept next
}

// entry is what this process knows about a key. A goroutine that holds the lock of a part may take the lock of an
// entry. A goroutine that holds the lock of an entry must not take the lock of a part.
type entry struct {
	mu      sync.Mutex
	gone    bool     // the entry was removed from the table
	windows []window // for each rate: what this process has admitted
	rates   []limiter.Rate
	loan    loan     // only used by a Borrower
	reserve []window // for each rate: what was admitted from the reserve; nil: nothing yet
}

func newTable() *table {
	t := &table{seed: maphash.MakeSeed(), most: mostEntries / shards}
	for i := range t.parts {
		t.parts[i] = part{entries: map[Key]*entry{}, sweepAt: sweepAbove}
	}
	return t
}

// find returns the entry of a bucket's key. If the table has no such entry, it makes one.
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

// sweep drops idle entries. If the part is still nearly full, it also drops entries of addresses until an eighth of
// the part is free. It never drops entries of keys and tenants that are in use.
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
		if len(p.entries) <= most-most/8 {
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

// lock finds and locks the entries of buckets. The buckets of every request are in the order of the table of
// policies, so two requests cannot deadlock. The argument `found` must be empty; the result reuses its memory.
func (t *table) lock(buckets []Bucket, now int64, found []*entry) []*entry {
	for {
		for i := range buckets {
			found = append(found, t.find(&buckets[i], now))
		}
		for i, e := range found {
			e.mu.Lock()
			if e.gone { // the entry was removed before we locked it
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

// clock measures times in nanoseconds since its start.
type clock struct {
	now   func() time.Time
	start time.Time
}

func startClock(now func() time.Time) clock { return clock{now: now, start: now()} }

func (c clock) elapsed() int64 { return int64(c.now().Sub(c.start)) }
