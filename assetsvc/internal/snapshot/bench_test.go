package snapshot

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// benchmarkAssets is the number of assets in the benchmarks. Each has 3 KB.
const benchmarkAssets = 100_000

// filled returns a store with assets, and the ids of the assets.
func filled(b *testing.B) (*boltstore.Store, []string) {
	b.Helper()
	s := openStore(b)
	ids := make([]string, benchmarkAssets)
	var g errgroup.Group
	g.SetLimit(1000)
	for i := range ids {
		ids[i] = storetest.NewID()
		g.Go(func() error {
			text := body(3000)
			for j := 6; j < 3000; j += 2 { // varied, so that it does not compress too well
				text[j] = "0123456789abcdef"[(i*j*7+j*j*i)%16]
			}
			_, err := s.Create(b.Context(), registry.Record{ID: ids[i], Listed: true, Body: text})
			return err
		})
	}
	expect.OK(b, g.Wait())
	return s, ids
}

// BenchmarkWritesDuringMaking changes assets with 16 writers: alone, while a maker makes snapshots all the time, and
// while it also makes whole copies.
func BenchmarkWritesDuringMaking(b *testing.B) {
	s, ids := filled(b)
	for _, name := range []string{"alone", "snapshots", "copies", "alone", "snapshots", "copies"} {
		b.Run(name, func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			var maker sync.WaitGroup
			if name != "alone" {
				k := keeper(b, s, b.TempDir())
				k.pause, k.o.Copies = rest, name == "copies"
				maker.Go(func() {
					for ctx.Err() == nil {
						_, _ = k.Make(ctx) // the last call is interrupted
					}
				})
			}
			times := write(b, s, ids)
			stop()
			maker.Wait()
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100])/float64(time.Millisecond), "p99-ms")
		})
	}
}

// write changes assets b.N times with 16 writers, and returns how long each change took.
func write(b *testing.B, s *boltstore.Store, ids []string) (times []time.Duration) {
	const writers = 16
	var mu sync.Mutex
	var g errgroup.Group
	b.ResetTimer()
	for w := range writers {
		g.Go(func() error {
			for i := w; i < b.N; i += writers {
				begun := time.Now()
				r, err := s.Get(b.Context(), ids[i*7919%len(ids)], registry.AnySize)
				if err == nil {
					_, err = s.Replace(b.Context(), r)
				}
				if err != nil {
					return err
				}
				mu.Lock()
				times = append(times, time.Since(begun))
				mu.Unlock()
			}
			return nil
		})
	}
	expect.OK(b, g.Wait())
	b.StopTimer()
	return times
}
