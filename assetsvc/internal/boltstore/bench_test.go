package boltstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
)

// BenchmarkPage reads pages of 100 entries from random offsets. It reports the time
// relative to a store with 1,000 assets. It also reports the memory of the process,
// without the pages of the file that the system caches.
func BenchmarkPage(b *testing.B) {
	var smallest float64
	for _, assets := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("assets=%d", assets), func(b *testing.B) {
			s, positions := filled(b, filepath.Join(b.TempDir(), "assets.db"), assets)
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				entries, err := s.Page(b.Context(),
					registry.Query{Offset: positions[rand.IntN(len(positions)-100)], Limit: 100})
				if err != nil || len(entries) != 100 {
					b.Fatalf("got %d entries, %v; want 100", len(entries), err)
				}
			}
			each := float64(b.Elapsed()) / float64(b.N)
			if smallest == 0 {
				smallest = each
			}
			b.ReportMetric(each/smallest, "x-of-1k")
			runtime.GC()
			b.ReportMetric(ownMemory(b), "own-MB")
		})
	}
}

// filled returns a store at path with the given number of listed assets of 3 KB,
// and their positions in order.
func filled(b *testing.B, path string, assets int) (*Store, []int64) {
	b.Helper()
	s, err := Open(path, Options{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	body := bytes.Repeat([]byte("x"), 3000)
	positions := make([]int64, assets)
	var wg sync.WaitGroup
	for i := range maxBatch {
		wg.Go(func() {
			for j := i; j < assets; j += maxBatch {
				position, err := s.Create(b.Context(), registry.Record{ID: storetest.NewID(), Listed: true, Body: body})
				if err != nil {
					b.Error(err)
					return
				}
				positions[j] = position
			}
		})
	}
	wg.Wait()
	slices.Sort(positions)
	return s, positions
}

// ownMemory returns the memory of the process without mapped files, in MB. It works
// on Linux only.
func ownMemory(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "RssAnon:"); found {
			kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kilobytes) / 1024
		}
	}
	b.Fatal("/proc/self/status has no RssAnon")
	return 0
}

// BenchmarkCreate measures durable creations by 1, 16 and 64 concurrent clients.
func BenchmarkCreate(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 3000)
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s, err := Open(filepath.Join(b.TempDir(), "assets.db"), Options{Now: time.Now})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			work := make(chan struct{})
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					for range work {
						if _, err := s.Create(b.Context(),
							registry.Record{ID: storetest.NewID(), Body: body}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

// BenchmarkOpen measures the time to open a small and a large store.
func BenchmarkOpen(b *testing.B) {
	for _, assets := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("assets=%d", assets), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "assets.db")
			s, _ := filled(b, path, assets)
			for b.Loop() {
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				var err error
				if s, err = Open(path, Options{Now: time.Now}); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
