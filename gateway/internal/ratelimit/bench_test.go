package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"
	libredis "github.com/ulule/limiter/v3/drivers/store/redis"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/identity"
	"asset-registry/shared/redistest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

func limiterOf(t testing.TB, store Store, table Table) *Limiter {
	t.Helper()
	l := New(store, table, time.Now, noop.NewMeterProvider().Meter(""))
	return l
}

// unreachable returns the policies of production, with limits that are too high for any benchmark to reach.
func unreachable() Table {
	table := Production()
	for i := range table {
		for length := range table[i].Windows {
			table[i].Windows[length] = 1 << 30
		}
	}
	return table
}

// BenchmarkBorrower compares loans with one round trip to Redis for each request. The two take turns in the
// same run, so the load of the machine affects both alike. The metric "ratio" is how many times longer a
// request takes with a round trip.
func BenchmarkBorrower(b *testing.B) {
	const requests, goroutines = 2000, 16 // requests of one turn, and goroutines that send them
	for _, clients := range []int{1, 100} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			url := redistest.Start(b, "--appendonly", "no").URL()
			loans := borrowerAt(b, url, nil, nil)
			redis, err := openWithin(url, time.Minute)
			expect.OK(b, err)
			b.Cleanup(func() { redis.Close() })
			turn := func(l *Limiter) time.Duration {
				start := time.Now()
				each(goroutines, requests, func(i int) {
					r := Request{Class: routes.Read, Client: member("b", fmt.Sprint(i%clients))}
					expect.Try(b, l.Admit(b.Context(), http.Header{}, r))
				})
				return time.Since(start)
			}
			withLoans, withTrips := limiterOf(b, loans, unreachable()), limiterOf(b, direct{redis}, unreachable())
			turn(withLoans) // this turn connects, and gets the first loans
			turn(withTrips)
			trips, turns := loans.trips.Load(), 0
			var lent, direct time.Duration
			for b.Loop() {
				lent += turn(withLoans)
				direct += turn(withTrips)
				turns++
			}
			count := float64(turns * requests)
			b.ReportMetric(0, "ns/op") // hides the time of a turn, which has no meaning
			b.ReportMetric(float64(lent.Nanoseconds())/count, "loans-ns/request")
			b.ReportMetric(float64(direct.Nanoseconds())/count, "trip-ns/request")
			b.ReportMetric(float64(loans.trips.Load()-trips)/count, "loans-trips/request")
			b.ReportMetric(direct.Seconds()/lent.Seconds(), "ratio")
		})
	}
}

// BenchmarkAdmit measures the checks of the limits for one request, once with a key that is in use and once
// with new addresses. For comparison it measures the library's Redis store, with one window and one key.
func BenchmarkAdmit(b *testing.B) {
	url := redistest.Start(b, "--appendonly", "no").URL()
	loans := borrowerAt(b, url, nil, nil)
	reserves := borrowerAt(b, url, nil, func(c *BorrowerConfig) { c.Gateways = 2 })
	for _, c := range []struct {
		name  string
		store Store
	}{{"memory", NewMemory(time.Now, 0)}, {"loans", loans}, {"loans of two gateways", reserves}} {
		l := limiterOf(b, c.store, unreachable())
		b.Run(c.name+"/busy key", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				answer := http.Header{}
				for p.Next() {
					expect.Try(b, l.Admit(b.Context(), answer, Request{Class: routes.Read, Client: member("b", "k")}))
				}
			})
		})
		b.Run(c.name+"/new addresses", func(b *testing.B) {
			b.ReportAllocs()
			answer := http.Header{}
			for i := 0; b.Loop(); i++ {
				addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
				expect.Try(b, l.Admit(b.Context(), answer, Request{Class: routes.Read, Client: Client{Addr: addr}}))
			}
		})
	}
	library, err := libredis.NewStore(loans.redis.connections.(library).client)
	expect.OK(b, err)
	b.Run("library on Redis/busy key", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := library.Get(b.Context(), "k", limiter.Rate{Limit: 1 << 30, Period: time.Second}); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func TestAdmitAllocatesLittle(t *testing.T) {
	l := limiterOf(t, NewMemory(time.Now, 0), Production())
	answer, n := http.Header{}, 0
	client := Client{Identity: identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}}
	for _, class := range []Class{routes.Read, routes.Write} {
		got := testing.AllocsPerRun(100, func() {
			n++
			client.Identity.KeyID = fmt.Sprint(n % 2)
			expect.OK(t, l.Admit(t.Context(), answer, Request{class, client, 3000}))
		})
		// The test itself needs one allocation, and the headers need two. The race detector empties pools,
		// which costs two more.
		expect.ErrorIf(t, got > 5, "%s: got %v allocations, want at most 5", class, got)
	}
}
