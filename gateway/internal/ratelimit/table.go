package ratelimit

import (
	"cmp"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/routes"
)

// shards is the number of parts of the table. Each part has its own lock.
const shards = 64

// sweepAbove is the least number of entries at which a part is swept.
const sweepAbove = 256

// sweepEvery is the least time between two sweeps of a full table for one part, so that a flood of new addresses does
// not pay for a sweep each.
const sweepEvery = int64(time.Second)

// table has the entries of keys. Its bytes are bounded, because outsiders may send requests from ever more addresses.
// An entry that is in use is never dropped. If the table is full, a new address shares the entry of its prefix; if an
// eighth more is full too, it shares one entry with all such addresses. Keys and tenants always get entries: only the
// operator makes them.
type table struct {
	seed  maphash.Seed
	parts [shards]part
	most  int64 // bytes that the entries may take before addresses share
	bytes atomic.Int64
}

type part struct {
	mu      sync.Mutex
	entries map[Key]*entry
	sweepAt int   // number of entries at which the part is swept next
	swept   int64 // time of the last sweep
}

// entry is what this process knows about a key. A goroutine that holds the lock of a part may take the lock of an
// entry. A goroutine that holds the lock of an entry must not take the lock of a part.
type entry struct {
	mu      sync.Mutex
	gone    bool     // the entry was removed from the table
	bytes   int64    // the size that the table has counted
	windows []window // for each rate: what this process has admitted
	rates   []limiter.Rate
	loan    loan     // only used by a Borrower
	reserve []window // for each rate: what was admitted from the reserve; nil: nothing yet
}

// defaultBytes is the size of a table without another one.
const defaultBytes = 16 << 20

// newTable returns a table whose entries take about the given number of bytes at most; 0: defaultBytes.
func newTable(most int64) *table {
	most = cmp.Or(most, defaultBytes)
	t := &table{seed: maphash.MakeSeed(), most: most * 8 / 9} // a ninth is for the prefixes
	for i := range t.parts {
		t.parts[i] = part{entries: map[Key]*entry{}, sweepAt: sweepAbove}
	}
	return t
}

// find returns the entry of a bucket's key. If the table has no such entry, it makes one. If there is no room for
// another address, it gives the bucket the key of the address's prefix.
func (t *table) find(b *Bucket, now int64) *entry {
	for {
		if e := t.own(b, now); e != nil {
			return e
		}
		b.Key = b.Key.wider()
	}
}

// own returns the entry of a bucket's key, or nil if there is no room for it.
func (t *table) own(b *Bucket, now int64) *entry {
	p := &t.parts[maphash.Comparable(t.seed, b.Key)%shards]
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[b.Key]; e != nil {
		return e
	}
	isFull := !t.hasRoom(b.Key)
	if len(p.entries) >= p.sweepAt || isFull && now >= p.swept+sweepEvery {
		t.bytes.Add(-p.sweep(now))
		isFull = !t.hasRoom(b.Key)
	}
	if isFull {
		return nil
	}
	e := &entry{windows: make([]window, len(b.Rates)), rates: b.Rates}
	e.bytes = e.size()
	t.bytes.Add(e.bytes)
	p.entries[b.Key] = e
	return e
}

// hasRoom reports whether the table may take an entry of the key.
func (t *table) hasRoom(k Key) bool {
	switch {
	case !k.Addr.IsValid() || k.Bits == widest:
		return true
	case k.Bits > 0:
		return t.bytes.Load() < t.most+t.most/8
	}
	return t.bytes.Load() < t.most
}

// sweep drops idle entries, and returns the bytes that they took.
func (p *part) sweep(now int64) (freed int64) {
	for k, e := range p.entries {
		e.mu.Lock()
		if e.idle(now) {
			e.gone = true
			freed += e.bytes
			delete(p.entries, k)
		}
		e.mu.Unlock()
	}
	p.swept, p.sweepAt = now, max(sweepAbove, 2*len(p.entries))
	return freed
}

// entryBytes is the size of an entry without its slices, with its place in the map of a part.
const entryBytes = int64(unsafe.Sizeof(entry{}) + 3*unsafe.Sizeof(Key{}))

// size returns about how many bytes the entry takes. The caller holds its lock.
func (e *entry) size() int64 {
	bytes := entryBytes + int64(cap(e.loan.known))*int64(unsafe.Sizeof(State{}))
	for _, windows := range [][]window{e.windows, e.reserve} {
		for i := range windows {
			bytes += int64(unsafe.Sizeof(window{})) + int64(cap(windows[i].marks))*int64(unsafe.Sizeof(mark{}))
		}
	}
	for _, r := range e.loan.refusal.shortage {
		bytes += int64(unsafe.Sizeof(r)) + 8*int64(cap(r.uses))
	}
	return bytes
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
				t.unlock(found[:i+1])
				found = found[:0]
				break
			}
		}
		if len(found) == len(buckets) {
			return found
		}
	}
}

// unlock unlocks entries, and counts by how much they have grown.
func (t *table) unlock(entries []*entry) {
	for _, e := range entries {
		if now := e.size(); now != e.bytes && !e.gone {
			t.bytes.Add(now - e.bytes)
			e.bytes = now
		}
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

// Limits of the bytes that a tenant writes, in production and in a sandbox. A write costs writeBytes in addition to
// the bytes of its body, because even the smallest write takes writeBytes on disk.
const (
	writeBytes     = 4 << 10
	bytesPerMinute = 100 << 20
	bytesPerDay    = 1 << 30
)

// Limits of the bytes of files that a tenant uploads, in production and in a sandbox.
const (
	fileBytesPerHour = 2 << 30
	fileBytesPerDay  = 20 << 30
)

// The function `one` returns the costs of a policy that counts only one class.
func one(class Class) map[Class]int64 { return map[Class]int64{class: 1} }

// weighted returns the costs of the policy that counts all requests of a tenant.
func weighted() map[Class]int64 {
	return map[Class]int64{routes.List: 5, routes.Own: 5, routes.Read: 1, routes.Write: 5}
}

// tenantBytes returns the policy that limits the bytes which a tenant writes.
func tenantBytes() Policy {
	return Policy{
		"tenant-bytes", ByTenant, map[Class]int64{routes.Write: writeBytes, Bytes: 1},
		map[string]int64{"1m": bytesPerMinute, "24h": bytesPerDay},
	}
}

// fileBytes returns the policy that limits the bytes of files which a tenant uploads.
func fileBytes() Policy {
	return Policy{
		"file-bytes", ByTenant, one(FileBytes), map[string]int64{"1h": fileBytesPerHour, "24h": fileBytesPerDay},
	}
}

// Production returns the policies of a registry in production.
func Production() Table {
	return Table{
		{"address-list", ByAddress, one(routes.List), map[string]int64{"1s": 100, "1m": 3_000}},
		{"address-own", ByAddress, one(routes.Own), map[string]int64{"1s": 20, "1m": 600}},
		{"address-read", ByAddress, one(routes.Read), map[string]int64{"1s": 1_000, "1m": 30_000}},
		{"address-write", ByAddress, one(routes.Write), map[string]int64{"1s": 50, "1m": 600}},
		{"address-failed", ByAddress, one(Failed), map[string]int64{"1m": 60, "1h": 600}},
		{"key-list", ByKey, one(routes.List), map[string]int64{"1s": 100, "1m": 3_000}},
		{"key-own", ByKey, one(routes.Own), map[string]int64{"1s": 20, "1m": 600}},
		{"key-read", ByKey, one(routes.Read), map[string]int64{"1s": 1_000, "1m": 30_000}},
		{"key-write", ByKey, one(routes.Write), map[string]int64{"1s": 200, "1m": 6_000}},
		{"tenant", ByTenant, weighted(), map[string]int64{"1s": 2_000, "1m": 60_000}},
		tenantBytes(),
		fileBytes(),
	}
}

// Sandbox returns the policies of a registry in which brokers test their programs.
func Sandbox() Table {
	return Table{
		{"address-list", ByAddress, one(routes.List), map[string]int64{"1s": 50, "1m": 1_000}},
		{"address-own", ByAddress, one(routes.Own), map[string]int64{"1s": 10, "1m": 300}},
		{"address-read", ByAddress, one(routes.Read), map[string]int64{"1s": 200, "1m": 5_000}},
		{"address-write", ByAddress, one(routes.Write), map[string]int64{"1s": 20, "1m": 300}},
		{"address-failed", ByAddress, one(Failed), map[string]int64{"1m": 60, "1h": 600}},
		{"key-list", ByKey, one(routes.List), map[string]int64{"1s": 50, "1m": 1_000}},
		{"key-own", ByKey, one(routes.Own), map[string]int64{"1s": 10, "1m": 300}},
		{"key-read", ByKey, one(routes.Read), map[string]int64{"1s": 200, "1m": 5_000}},
		{"key-write", ByKey, one(routes.Write), map[string]int64{"1s": 50, "1m": 1_000}},
		{"tenant", ByTenant, weighted(), map[string]int64{"1s": 400, "1m": 10_000}},
		tenantBytes(),
		fileBytes(),
	}
}
