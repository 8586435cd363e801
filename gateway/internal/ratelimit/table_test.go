package ratelimit

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/testing/expect"
)

// TestASweepDropsOnlyWhatIsIdle sweeps a part that has idle entries, busy keys and busy addresses. An entry that leaves
// the part must be marked as gone, because a request may have found it before.
func TestASweepDropsOnlyWhatIsIdle(t *testing.T) {
	for _, c := range []struct {
		name                  string
		idle, keys, addresses int
		sweepAt               int // number of entries at the next sweep
	}{
		{"many entries", 300, 100, 100, 400},
		{"a few entries", 10, 3, 3, sweepAbove},
	} {
		p, all := part{entries: map[Key]*entry{}}, map[Key]*entry{}
		add := func(k Key, cost int64) {
			e := &entry{windows: make([]window, 1), rates: []limiter.Rate{{Limit: 10, Period: time.Minute}}, bytes: 7}
			e.windows[0].add(0, cost, time.Minute)
			p.entries[k], all[k] = e, e
		}
		for i := range c.idle {
			add(Key{Name: fmt.Sprint("idle ", i)}, 0)
		}
		for i := range c.keys {
			add(Key{Name: fmt.Sprint("key ", i)}, 1)
		}
		for i := range c.addresses {
			add(Key{Addr: address(i)}, 1)
		}
		freed := p.sweep(1)
		if len(p.entries) != c.keys+c.addresses || p.sweepAt != c.sweepAt || freed != int64(7*c.idle) {
			t.Errorf("%s: got %d entries, %d bytes freed, and the next sweep at %d; want %d, %d and %d", c.name,
				len(p.entries), freed, p.sweepAt, c.keys+c.addresses, 7*c.idle, c.sweepAt)
		}
		for k, e := range all {
			if kept := p.entries[k] != nil; e.gone == kept || kept != (e.windows[0].used > 0) {
				t.Errorf("%s: %v: got kept %t and gone %t", c.name, k, kept, e.gone)
			}
		}
	}
}

// TestAFullTableTakesItsBytesOnly sends requests from ever more networks, of the Internet Protocol 4 and 6, each of
// which fills its windows. The heap must grow by the bytes of the table only, nobody who is known may get a new limit,
// and clients that the table does not know share the limit of their prefix.
func TestAFullTableTakesItsBytesOnly(t *testing.T) {
	const bytes, clients = 2 << 20, 40_000
	clock := newClock()
	store := NewMemory(clock.now, bytes)
	rates := []limiter.Rate{{Limit: 100, Period: time.Minute}, {Limit: 1000, Period: time.Hour}}
	from := func(k Key) Verdict {
		v, err := store.Take(t.Context(), []Bucket{{Key: k, Cost: 1, Rates: rates}}, nil)
		expect.OK(t, err)
		return v
	}
	of := func(n int) Key {
		a := [16]byte{0x20, 0x01, byte(n >> 8), byte(n), 0, 1, 0, 1}
		if n%2 == 0 {
			return Key{Policy: "p", Addr: netip.AddrFrom4([4]byte{byte(n >> 8), byte(n), 1, 1})}
		}
		return Key{Policy: "p", Addr: netip.AddrFrom16(a)}
	}
	first := Key{Policy: "p", Addr: netip.MustParseAddr("192.0.2.1")}
	for range 40 {
		clock.pass(time.Second)
		from(first)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range clients {
		from(of(n))
		if n%1000 == 0 {
			clock.pass(time.Millisecond)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 3*bytes/2 {
		t.Errorf("got %d bytes for %d clients, want about %d", grown, clients, bytes)
	}
	if counted := store.table.bytes.Load(); counted > bytes+bytes/16 || counted < bytes/2 {
		t.Errorf("the table counts %d bytes, want about %d", counted, bytes)
	}
	left := func(k Key) int64 { return from(k).States[0].Left }
	expect.Equal(t, left(first), 59, "a client that is known: left")
	expect.Equal(t, left(Key{Policy: "p", Name: "key"}), 99, "a key: left")
	one, same := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.7.7")
	table := store.table
	table.most = table.bytes.Load() // there is room for prefixes
	was, next := left(Key{Policy: "p", Addr: one}), left(Key{Policy: "p", Addr: same})
	if other := left(Key{Policy: "p", Addr: netip.MustParseAddr("203.0.113.1")}); next != was-1 || other != 99 {
		t.Errorf("two clients of a prefix and one of another: got %d, %d and %d left, want %d, %d and 99", was, next, other,
			was, was-1)
	}
	for range 3600 { // all that was used leaves its windows
		clock.pass(2 * time.Second)
	}
	expect.Equal(t, left(of(clients)), 99, "after all is idle: left")
}

// TestAnEntryThatIsRemovedMeanwhileIsNotUsed locks two entries. While the test waits for the lock of the second
// entry, this entry is removed from the table. The result must be the entries that are in the table.
func TestAnEntryThatIsRemovedMeanwhileIsNotUsed(t *testing.T) {
	table, rates := newTable(0), []limiter.Rate{{Limit: 10, Period: time.Minute}}
	buckets := []Bucket{{Key: Key{Name: "key"}, Rates: rates}, {Key: Key{Name: "tenant"}, Rates: rates}}
	key, old := table.find(&buckets[0], 0), table.find(&buckets[1], 0)
	old.mu.Lock()
	locked := make(chan []*entry)
	go func() { locked <- table.lock(buckets, 0, nil) }()
	await(t, "the first entry is locked", func() bool {
		if key.mu.TryLock() {
			key.mu.Unlock()
			return false
		}
		return true
	})
	for i := range table.parts {
		p := &table.parts[i]
		p.mu.Lock()
		delete(p.entries, buckets[1].Key)
		p.mu.Unlock()
	}
	old.gone = true
	old.mu.Unlock()
	got := <-locked
	if len(got) != 2 || got[0] != key || got[1] != table.find(&buckets[1], 0) {
		t.Errorf("got the entries %p, want %p and the new one", got, key)
	}
	table.unlock(got)
	for _, e := range []*entry{key, old} {
		expect.ErrorIf(t, !e.mu.TryLock(), "got an entry that is still locked, want it free")
	}
}
