package ratelimit

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// blocked remembers the addresses that have sent too many wrong keys, so that
// a right one costs no question to a store.
type blocked struct {
	some  atomic.Bool // whether there is any: mostly not
	mu    sync.Mutex
	until map[netip.Addr]time.Time
}

// maxBlocked bounds what is remembered; who is forgotten is blocked again by
// the store after one more wrong key.
const maxBlocked = 100_000

func (b *blocked) add(addr netip.Addr, now, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.until) >= maxBlocked {
		for a, u := range b.until {
			if !u.After(now) {
				delete(b.until, a)
			}
		}
		if len(b.until) >= maxBlocked {
			clear(b.until)
		}
	}
	if b.until == nil {
		b.until = map[netip.Addr]time.Time{}
	}
	if until.After(b.until[addr]) { // it stays as long as it was told
		b.until[addr] = until
	}
	b.some.Store(true)
}

func (b *blocked) wait(addr netip.Addr, now func() time.Time) time.Duration {
	if !b.some.Load() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	until, known := b.until[addr]
	if !known {
		return 0
	}
	wait := until.Sub(now())
	if wait <= 0 {
		delete(b.until, addr)
		b.some.Store(len(b.until) > 0)
	}
	return wait
}
