package ratelimit

import (
	"cmp"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"asset-registry/shared/clientaddr"
)

// lockouts remembers the addresses that are locked out. So a request with a right key needs no call to a store.
// It is safe for concurrent use. No lockout is forgotten before its end: an address that has no room is locked out with
// its prefix.
type lockouts struct {
	some  atomic.Bool // whether any address is remembered, which is rare
	mu    sync.Mutex
	most  int // maximum number of addresses in the field `until`; 0: defaultLockouts
	until map[netip.Addr]time.Time
	swept time.Time // when the addresses whose lockouts have ended were forgotten

	seed     maphash.Seed
	prefixes []time.Time // ends of lockouts, by the hash of the prefix; nil: there was always room
	last     time.Time   // the last of these ends
}

const (
	defaultLockouts = 100_000
	lockoutBytes    = 128     // of an address in the map, about
	prefixSlots     = 1 << 12 // two prefixes share a slot by chance only
)

// add locks an address out. It never shortens a lockout, because the client already knows when the lockout ends.
func (l *lockouts) add(addr netip.Addr, now, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.some.Store(true)
	if l.until == nil {
		l.until = map[netip.Addr]time.Time{}
	}
	_, known := l.until[addr]
	if !known && !l.hasRoom(now) {
		if l.prefixes == nil {
			l.prefixes, l.seed = make([]time.Time, prefixSlots), maphash.MakeSeed()
		}
		if slot := l.slot(addr); until.After(*slot) {
			*slot = until
		}
		if until.After(l.last) {
			l.last = until
		}
		return
	}
	if until.After(l.until[addr]) {
		l.until[addr] = until
	}
}

// hasRoom reports whether one more address may be remembered. If not, it forgets lockouts that have ended, once a
// second at most.
func (l *lockouts) hasRoom(now time.Time) bool {
	most := cmp.Or(l.most, defaultLockouts)
	if len(l.until) >= most && now.Sub(l.swept).Abs() >= time.Second {
		l.swept = now
		for a, u := range l.until {
			if !u.After(now) {
				delete(l.until, a)
			}
		}
	}
	return len(l.until) < most
}

// slot returns the place of an address's prefix.
func (l *lockouts) slot(addr netip.Addr) *time.Time {
	return &l.prefixes[maphash.Comparable(l.seed, clientaddr.Prefix(addr))%prefixSlots]
}

// wait returns for how long the address is still locked out; 0 or less if it is not locked out.
func (l *lockouts) wait(addr netip.Addr, now func() time.Time) (wait time.Duration) {
	if !l.some.Load() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now()
	if until, locked := l.until[addr]; locked {
		if wait = until.Sub(at); wait <= 0 {
			delete(l.until, addr)
		}
	}
	if l.prefixes != nil {
		wait = max(wait, l.slot(addr).Sub(at))
		if !l.last.After(at) {
			l.prefixes = nil
		}
	}
	l.some.Store(len(l.until) > 0 || l.prefixes != nil)
	return wait
}
