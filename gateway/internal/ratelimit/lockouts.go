package ratelimit

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// lockouts remembers the addresses that are locked out. So a request with a right key needs no call to a store.
// It is safe for concurrent use.
type lockouts struct {
	some  atomic.Bool // whether any address is remembered, which is rare
	mu    sync.Mutex
	until map[netip.Addr]time.Time
}

// maxLockouts is the maximum number of addresses that are remembered. If a locked-out address is forgotten, its next
// wrong key locks it out again.
const maxLockouts = 100_000

// add locks an address out. It never shortens a lockout, because the client already knows when the lockout ends.
func (l *lockouts) add(addr netip.Addr, now, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.until) >= maxLockouts {
		for a, u := range l.until {
			if !u.After(now) {
				delete(l.until, a)
			}
		}
		if len(l.until) >= maxLockouts {
			clear(l.until)
		}
	}
	if l.until == nil {
		l.until = map[netip.Addr]time.Time{}
	}
	if until.After(l.until[addr]) {
		l.until[addr] = until
	}
	l.some.Store(true)
}

// wait returns for how long the address is still locked out; 0 or less if it is not locked out.
func (l *lockouts) wait(addr netip.Addr, now func() time.Time) time.Duration {
	if !l.some.Load() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	until, locked := l.until[addr]
	if !locked {
		return 0
	}
	wait := until.Sub(now())
	if wait <= 0 {
		delete(l.until, addr)
		l.some.Store(len(l.until) > 0)
	}
	return wait
}
