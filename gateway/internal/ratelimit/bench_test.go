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
)

func limiterOf(t testing.TB, store Store, table Table) *Limiter {
	t.Helper()
	l, err := New(store, table, time.Now, noop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// BenchmarkAdmit is what limits cost a request: with a busy key, and with keys
// of which each asks for the first time. The library's Redis store, with one
// window and one key, is there to compare.
func BenchmarkAdmit(b *testing.B) {
	table := Production()
	for i := range table {
		for length := range table[i].Windows {
			table[i].Windows[length] = 1 << 30
		}
	}
	url := redistest.Start(b, "--appendonly", "no").URL()
	shared := shareAt(b, url, nil, nil)
	counted := shareAt(b, url, nil, func(c *LeasesConfig) { c.Gateways = 2 })
	busy := Client{Addr: netip.MustParseAddr("192.0.2.1"), Identity: identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}}
	for name, store := range map[string]Store{"memory": NewMemory(time.Now), "leases": shared, "leases of two gateways": counted} {
		l := limiterOf(b, store, table)
		b.Run(name+"/busy key", func(b *testing.B) {
			b.ReportAllocs()
			before := shared.trips.Load()
			b.RunParallel(func(p *testing.PB) {
				answer := http.Header{}
				for p.Next() {
					if err := l.Admit(b.Context(), answer, Request{Class: routes.Read, Client: busy}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(shared.trips.Load()-before)/float64(b.N), "trips/op")
		})
		b.Run(name+"/new addresses", func(b *testing.B) {
			b.ReportAllocs()
			answer := http.Header{}
			for i := 0; b.Loop(); i++ {
				addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
				if err := l.Admit(b.Context(), answer, Request{Class: routes.Read, Client: Client{Addr: addr}}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	library, err := libredis.NewStore(shared.redis.client)
	if err != nil {
		b.Fatal(err)
	}
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

func TestHotPathAllocatesLittle(t *testing.T) {
	l := limiterOf(t, NewMemory(time.Now), Production())
	answer, n := http.Header{}, 0
	client := Client{Identity: identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}}
	for _, class := range []Class{routes.Read, routes.Write} {
		got := testing.AllocsPerRun(100, func() {
			n++
			client.Identity.KeyID = fmt.Sprint(n % 2)
			if err := l.Admit(t.Context(), answer, Request{class, client, 3000}); err != nil {
				t.Fatal(err)
			}
		})
		// One is the test's, two are the headers' text and its parts; and the race
		// detector makes pools forget.
		if got > 5 {
			t.Errorf("a %s allocates %v times, want 5 at most", class, got)
		}
	}
}
