package ratelimit

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"
	libredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"asset-registry/shared/identity"
	"asset-registry/shared/redistest"
)

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
	r, err := OpenRedis(url)
	if err != nil {
		b.Fatal(err)
	}
	shared := NewShared(r, SharedConfig{Away: AwayLocal, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	defer shared.Close()
	again, err := OpenRedis(url)
	if err != nil {
		b.Fatal(err)
	}
	counted := NewShared(again, SharedConfig{Away: AwayLocal, Gateways: 2, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	defer counted.Close()
	busy := Client{Addr: netip.MustParseAddr("192.0.2.1"), Identity: identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}}
	for name, store := range map[string]Store{"memory": NewMemory(time.Now), "leases": shared, "leases of two gateways": counted} {
		l := New(store, table, time.Now)
		b.Run(name+"/busy key", func(b *testing.B) {
			b.ReportAllocs()
			before := shared.trips.Load()
			b.RunParallel(func(p *testing.PB) {
				answer := http.Header{}
				for p.Next() {
					if err := l.Admit(b.Context(), answer, Read, busy); err != nil {
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
				if err := l.Admit(b.Context(), answer, Read, Client{Addr: addr}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	library, err := libredis.NewStore(r.client)
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
	l := New(NewMemory(time.Now), Production(), time.Now)
	answer, n := http.Header{}, 0
	client := Client{Identity: identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}}
	got := testing.AllocsPerRun(100, func() {
		n++
		client.Identity.KeyID = fmt.Sprint(n % 2)
		if err := l.Admit(t.Context(), answer, Read, client); err != nil {
			t.Fatal(err)
		}
	})
	if got > 3 { // one of them is the test's: the headers' text and its parts remain
		t.Errorf("a request allocates %v times", got)
	}
}
