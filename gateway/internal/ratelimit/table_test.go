package ratelimit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"
)

// TestASweepDropsWhatIsIdleAndThenAddresses sweeps a part that has idle entries, busy keys and busy addresses. An entry
// that leaves the part must be marked as gone, because a request may have found it before.
func TestASweepDropsWhatIsIdleAndThenAddresses(t *testing.T) {
	for _, c := range []struct {
		name                  string
		idle, keys, addresses int
		most                  int
		want                  int // number of entries that are left
		sweepAt               int // number of entries at the next sweep
	}{
		{"only the idle", 300, 100, 100, 1600, 200, 400},
		{"a few entries", 10, 3, 3, 1600, 6, sweepAbove},
		{"an eighth is free", 9, 700, 700, 1600, 1400, 1600},
		{"less than an eighth is free", 9, 700, 701, 1600, 1400, 1600},
		{"keys in use are kept", 0, 1500, 99, 1600, 1500, 1600},
	} {
		p, all := part{entries: map[Key]*entry{}}, map[Key]*entry{}
		add := func(k Key, cost int64) {
			e := &entry{windows: make([]window, 1), rates: []limiter.Rate{{Limit: 10, Period: time.Minute}}}
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
			add(Key{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}, 1)
		}
		p.sweep(1, c.most)
		if len(p.entries) != c.want || p.sweepAt != c.sweepAt {
			t.Errorf("%s: got %d entries, and the next sweep at %d; want %d and %d", c.name, len(p.entries), p.sweepAt, c.want,
				c.sweepAt)
		}
		for k, e := range all {
			kept := p.entries[k] != nil
			if e.gone == kept || k.Name != "" && kept != (e.windows[0].used > 0) {
				t.Errorf("%s: %v: got kept %t and gone %t", c.name, k, kept, e.gone)
			}
		}
	}
}

// TestAnEntryThatIsRemovedMeanwhileIsNotUsed locks two entries. While the test waits for the lock of the second
// entry, this entry is removed from the table. The result must be the entries that are in the table.
func TestAnEntryThatIsRemovedMeanwhileIsNotUsed(t *testing.T) {
	table, rates := newTable(), []limiter.Rate{{Limit: 10, Period: time.Minute}}
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
	unlock(got)
	for _, e := range []*entry{key, old} {
		if !e.mu.TryLock() {
			t.Error("got an entry that is still locked, want it free")
		}
	}
}
