package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
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

// Get implements limiter.Store.
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
