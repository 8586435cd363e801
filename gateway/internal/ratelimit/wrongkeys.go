package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
)

// wrongKeyRate limits how many wrong API keys an address may send in one window.
type wrongKeyRate struct {
	*limiter.Limiter
	cost int64
}

// wrongKeyRates returns the rates that count wrong API keys. A wrong key has costs for one address only, so
// the library's Limiter is enough.
func wrongKeyRates(store Store, rules []rule, now func() time.Time) (rates []wrongKeyRate) {
	for _, r := range rules {
		if r.Costs[Failed] == 0 {
			continue
		}
		for _, rate := range r.rates {
			rates = append(rates, wrongKeyRate{limiter.New(addressStore{store, now}, rate), r.Costs[Failed]})
		}
	}
	return rates
}

// CountWrongKey counts a wrong API key for the address that sent it. When the address has reached a limit,
// CheckLockout refuses all keys from this address. It does so until the window has room for another wrong key. If the
// address is above a limit, CountWrongKey returns a fault of kind TooMany and sets the rate limit headers of the
// answer.
func (l *Limiter) CountWrongKey(ctx context.Context, answer http.Header, client netip.Addr) error {
	address, now := clientaddr.Network(client), l.now()
	var lockedUntil, refusedUntil time.Time
	v := Verdict{}
	for i, rate := range l.wrongKeys {
		counted, err := rate.Increment(ctx, address.String(), rate.cost)
		if err != nil {
			return uncounted(err)
		}
		reset := now.Add(time.Unix(counted.Reset, 0).Sub(now)) // with a monotonic time, so nobody's clock ends or prolongs it
		if counted.Remaining == 0 && reset.After(lockedUntil) {
			lockedUntil = reset
		}
		if counted.Reached && reset.After(refusedUntil) {
			refusedUntil, v.Refused = reset, i
		}
		v.States = append(v.States, State{Rate: rate.Rate, Left: counted.Remaining, Next: reset.Sub(now)})
	}
	if lockedUntil.Before(refusedUntil) {
		lockedUntil = refusedUntil
	}
	if lockedUntil.After(now) {
		l.lockouts.add(address, now, lockedUntil)
	}
	if refusedUntil.IsZero() {
		return nil
	}
	p := l.plans[planOf{class: Failed}]
	v.Wait = lockedUntil.Sub(now)
	writeHeaders(answer, p, v, now)
	return l.tooMany(ctx, p, v)
}

// CheckLockout returns a fault of kind TooMany while an address is locked out for sending too many wrong API
// keys.
func (l *Limiter) CheckLockout(ctx context.Context, client netip.Addr) error {
	wait := l.lockouts.wait(clientaddr.Network(client), l.now)
	if wait <= 0 {
		return nil
	}
	for _, r := range l.plans[planOf{class: Failed}].rules {
		l.countRefusal(ctx, r.Name)
	}
	f := fault.New(fault.TooMany, fault.Header, "Authorization",
		"Too many API keys from your address were wrong; wait as Retry-After says.")
	f.RetryAfter = wait
	return f
}

// addressStore implements limiter.Store of the limiter library, and keeps its counts in our Store. The library's key
// is an address. Our key also has the name of the rate, so each rate has counts of its own.
type addressStore struct {
	store Store
	now   func() time.Time
}

func (s addressStore) Get(ctx context.Context, address string, rate limiter.Rate) (limiter.Context, error) {
	return s.Increment(ctx, address, 1, rate)
}

// Increment implements limiter.Store. Above the limit it counts nothing. If it refuses the request, the field Reset
// of the result is the time when the request would be admitted. If it admits the request, Reset is the time when more
// of the limit is left. The time is rounded up to a whole second, so that no client waits too short a time.
func (s addressStore) Increment(
	ctx context.Context, address string, count int64, rate limiter.Rate,
) (limiter.Context, error) {
	addr, _ := netip.ParseAddr(address) // if there is no address, the zero address counts
	key := Key{Policy: "failed/" + rate.Formatted, Addr: addr}
	v, err := s.store.Take(ctx, []Bucket{{Key: key, Cost: count, Rates: []limiter.Rate{rate}}}, nil)
	if err != nil {
		return limiter.Context{}, err
	}
	now := s.now()
	if len(v.States) == 0 { // the store counts nothing at the moment
		return limiter.Context{Limit: rate.Limit, Remaining: rate.Limit, Reset: now.Unix()}, nil
	}
	free := now.Add(max(v.States[0].Next, v.Wait) + time.Second - 1)
	return limiter.Context{Limit: rate.Limit, Remaining: v.States[0].Left, Reset: free.Unix(), Reached: v.Wait > 0}, nil
}

// Peek implements limiter.Store. No code calls it.
func (s addressStore) Peek(context.Context, string, limiter.Rate) (limiter.Context, error) {
	return limiter.Context{}, errors.ErrUnsupported
}

// Reset implements limiter.Store. No code calls it.
func (s addressStore) Reset(context.Context, string, limiter.Rate) (limiter.Context, error) {
	return limiter.Context{}, errors.ErrUnsupported
}

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
