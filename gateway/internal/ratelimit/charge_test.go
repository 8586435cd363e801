package ratelimit

import (
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/redistest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// chargedTable limits reads of a key, and bytes that a broker stores.
var chargedTable = Table{
	{Name: "reads", By: ByKey, Costs: map[Class]int64{routes.Read: 1, routes.Write: 2}, Windows: map[string]int64{"10s": 64, "1m": 320}},
	{Name: "size", By: ByTenant, Costs: map[Class]int64{routes.Write: 10, Bytes: 1}, Windows: map[string]int64{"1m": 320}},
}

// TestAChargeIsForTheNextRequests charges answers of several costs, also beyond the limit. Only the next requests of
// the same client must wait, as long as a refusal says, and a refusal must charge nothing.
func TestAChargeIsForTheNextRequests(t *testing.T) {
	for _, c := range []struct {
		name  string
		class Class
		times []int64 // a request, and the charge for its answer, each
		least time.Duration
		most  time.Duration
	}{
		{"less than the limit", routes.Read, []int64{10, 10, 10}, 0, 0},
		{"the rest of the limit", routes.Read, []int64{31, 31}, 8 * time.Second, 13 * time.Second},
		{"more than the limit at once", routes.Read, []int64{1000}, 58 * time.Second, 66 * time.Second},
		{"a write counts twice", routes.Write, []int64{15, 15}, 8 * time.Second, 13 * time.Second},
	} {
		clock := newClock()
		for name, store := range clocked(t, clock) {
			t.Run(c.name+" in "+name, func(t *testing.T) {
				l := New(store, chargedTable, clock.now, noop.NewMeterProvider().Meter(""))
				of := func(key string) Request { return Request{Class: c.class, Client: member("b"+key, key)} }
				ask := func(key string) time.Duration {
					return waitOf(t, l.Admit(t.Context(), http.Header{}, of(key)))
				}
				for _, times := range c.times {
					if wait := ask("charged"); wait > 0 {
						t.Fatalf("got a wait of %v, want the request admitted", wait)
					}
					l.Charge(of("charged"), times)
				}
				wait := ask("charged")
				if wait < c.least || wait > c.most {
					t.Errorf("got a wait of %v, want %v to %v", wait, c.least, c.most)
				}
				for range 100 { // refusals; if they cost anything, the wait below is too short
					if c.least > 0 && ask("charged") == 0 {
						t.Fatal("got a request admitted before the time was over, want a refusal")
					}
				}
				if got := ask("other"); got > 0 {
					t.Errorf("another client: got a wait of %v, want none", got)
				}
				clock.pass(wait)
				if got := ask("charged"); got > 0 {
					t.Errorf("after the wait: got a wait of %v more, want none", got)
				}
			})
		}
	}
}

// TestAChargeIsToldToOtherGateways charges more than a limit at one gateway. Another gateway must refuse the client.
func TestAChargeIsToldToOtherGateways(t *testing.T) {
	clock, url := newClock(), redistest.Start(t, "--appendonly", "no").URL()
	request := Request{Class: routes.Read, Client: member("b", "k")}
	at := func(s Store) *Limiter {
		l := New(s, chargedTable, clock.now, noop.NewMeterProvider().Meter(""))
		return l
	}
	one, other := at(borrowerAt(t, url, clock, nil)), at(borrowerAt(t, url, clock, nil))
	expect.OK(t, one.Admit(t.Context(), http.Header{}, request))
	one.Charge(request, 1000)
	await(t, "the other gateway refuses the client", func() bool {
		return waitOf(t, other.Admit(t.Context(), http.Header{}, request)) > 50*time.Second
	})
}

// TestAChargeWithoutRedisIsToldLater charges a client while Redis is down, in each mode.
func TestAChargeWithoutRedisIsToldLater(t *testing.T) {
	for fallback, refused := range map[Fallback]bool{FallbackLocal: true, FallbackOpen: false} {
		clock, server := newClock(), redistest.Start(t, "--appendonly", "no")
		store := borrowerAt(t, server.URL(), clock, func(c *BorrowerConfig) { c.Fallback = fallback })
		l := New(store, chargedTable, clock.now, noop.NewMeterProvider().Meter(""))
		store.markDown(ErrStoreDown)
		request := Request{Class: routes.Read, Client: member("b", "k")}
		l.Charge(request, 1000)
		if wait := waitOf(t, l.Admit(t.Context(), http.Header{}, request)); wait > 0 != refused {
			t.Errorf("%s: got a wait of %v, want a refusal: %t", fallback, wait, refused)
		}
		if fallback == FallbackOpen {
			continue
		}
		await(t, "Redis is back and another gateway refuses the client", func() bool {
			other := New(borrowerAt(t, server.URL(), clock, nil), chargedTable, clock.now, noop.NewMeterProvider().Meter(""))
			return isUp(store)() && waitOf(t, other.Admit(t.Context(), http.Header{}, request)) > 50*time.Second
		})
	}
}
