package boltstore

import (
	"bytes"
	"errors"
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

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/translog"
)

// BenchmarkPage reads pages of 100 entries from random offsets. It reports the time relative to the time in a
// store with 1,000 assets. It also reports the memory of the process, without the part of the file that is in
// the cache of the operating system.
func BenchmarkPage(b *testing.B) {
	var smallest float64
	for _, assets := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("assets=%d", assets), func(b *testing.B) {
			s, positions := filled(b, filepath.Join(b.TempDir(), "assets.db"), assets)
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				page, err := s.Page(b.Context(),
					registry.Query{Offset: positions[rand.IntN(len(positions)-100)], Limit: 100})
				if err != nil || len(page.Entries) != 100 {
					b.Fatalf("got %d entries, %v; want 100", len(page.Entries), err)
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

// filled returns a store at path that has the given number of listed assets of 3 KB. It also returns their
// positions in order.
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

// ownMemory returns the memory of the process in MB, without mapped files. It works only on Linux.
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

// BenchmarkCreate measures how fast 1, 16 and 64 concurrent clients create assets durably.
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

// BenchmarkOpen measures how long it takes to open a small store and a large one.
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

// BenchmarkPublicLog adds the changes of published assets of 3 KB to the public log, and signs it.
func BenchmarkPublicLog(b *testing.B) {
	const changes = 20_000
	key, err := translog.NewKey(translog.ForLog, "registry.example/log", make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(filepath.Join(b.TempDir(), "assets.db"), Options{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body := fmt.Appendf(nil, `{"status":"pending","title":"%s"}`, strings.Repeat("x", 3000))
	var clients errgroup.Group
	clients.SetLimit(256)
	for range changes {
		clients.Go(func() error {
			r := registry.Record{ID: storetest.NewID(), Listed: true, Body: body}
			if err := registry.DescribeCreation(&r, registry.Author{Broker: "b"}); err != nil {
				return err
			}
			_, err := s.Create(b.Context(), r)
			return err
		})
	}
	if err := clients.Wait(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		err := s.file.Update(func(tx *bbolt.Tx) error {
			return errors.Join(tx.Bucket(stateBucket).Delete(headKey), tx.DeleteBucket(tileBucket),
				create(tx, tileBucket))
		})
		if err != nil {
			b.Fatal(err)
		}
		w := publiclog.NewWriter(s, s, publiclog.Options{Keys: []translog.Key{key}})
		b.StartTimer()
		for more := true; more; {
			if more, _, err = w.Extend(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.Sign(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if head, err := s.LogHead(b.Context()); err != nil || head.Tree.Size() != changes {
		b.Fatalf("got %d leaves, %v; want %d", head.Tree.Size(), err, changes)
	}
	b.ReportMetric(changes*float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}

func create(tx *bbolt.Tx, bucket []byte) error {
	_, err := tx.CreateBucket(bucket)
	return err
}
