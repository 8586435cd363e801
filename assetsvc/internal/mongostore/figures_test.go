package mongostore

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

var (
	figureAssets = flag.String("mongo.assets", "40", "numbers of assets for the figures of pages, separated by commas")
	figureTime   = flag.Duration("mongo.for", 50*time.Millisecond, "time for each figure")
)

// TestFigures prints a table of how fast the store is. `make test-mongo` runs it with large numbers on a real
// server. On the stand-in for MongoDB it only shows that the table can be made.
func TestFigures(t *testing.T) {
	server := mongotest.Start(t)
	table := &strings.Builder{}
	fmt.Fprintf(table, "| %-24s | %7s | %8s | %8s | %8s |\n", "operation", "clients", "a second", "p50", "p99")
	fmt.Fprintln(table, "|---|---|---|---|---|")
	s := openWith(t, server.URI(t, "figures"), Options{})
	for _, clients := range []int{1, 16, 64} {
		measured(t, table, "create", clients, func(context.Context, int) error {
			mustCreate(t, s)
			return nil
		})
		own := make([]registry.Record, clients)
		for i := range own {
			own[i] = mustCreate(t, s)
		}
		measured(t, table, "change", clients, func(ctx context.Context, client int) (err error) {
			own[client].Position, err = s.Replace(ctx, own[client])
			own[client].Revision++
			return err
		})
	}
	read := mustCreate(t, s)
	for _, fresh := range []bool{false, true} {
		if fresh && !server.Real {
			continue // a barrier needs a replica set
		}
		s := openWith(t, server.URI(t, "figures"), Options{FreshReads: fresh})
		for _, clients := range []int{1, 16, 64} {
			name := map[bool]string{false: "read", true: "read with a barrier"}[fresh]
			measured(t, table, name, clients, func(ctx context.Context, _ int) error {
				_, err := s.Get(ctx, read.ID, registry.AnySize)
				return err
			})
		}
	}
	for number := range strings.SplitSeq(*figureAssets, ",") {
		var assets int
		expect.Get(fmt.Sscan(number, &assets))(t)
		uri := server.URI(t, fmt.Sprintf("figures%d", assets))
		fill(t, uri, assets)
		s := openWith(t, uri, Options{})
		for _, bodies := range []int{0, 16 << 20} {
			name := map[bool]string{false: "page of %d", true: "page of %d, bodies"}[bodies > 0]
			measured(t, table, fmt.Sprintf(name, assets), 16, func(ctx context.Context, _ int) error {
				_, err := s.Page(ctx, registry.Query{Offset: int64(1 + randtest.IntN(assets)), Limit: 100, Bodies: bodies})
				return err
			})
		}
	}
	fmt.Print("\n" + table.String() + "\n")
}

// fill imports the given number of assets, at the positions from 1 upwards.
func fill(t *testing.T, uri string, assets int) {
	t.Helper()
	i := expect.Get(OpenImport(t.Context(), uri))(t)
	defer i.Close()
	var records []registry.Record
	for n := range assets {
		records = append(records, registry.Record{
			ID: storetest.NewID(), Position: int64(n + 1), Revision: 1, Listed: true, Sealed: "sealed", Body: body,
		})
	}
	for piece := range slices.Chunk(records, 1000) {
		expect.OK(t, i.Put(t.Context(), piece))
	}
	expect.OK(t, i.Finish(t.Context(), assets, 0, 0, int64(assets)))
}

// measured lets clients call the function `do` for some time, and adds a line with the result to the table.
func measured(t *testing.T, table *strings.Builder, name string, clients int, do func(context.Context, int) error) {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var running sync.WaitGroup
	begun := time.Now()
	for client := range clients {
		running.Go(func() {
			for first := true; first || time.Since(begun) < *figureTime; first = false {
				at := time.Now()
				if err := do(t.Context(), client); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(at))
				mu.Unlock()
			}
		})
	}
	running.Wait()
	all := time.Since(begun)
	if len(took) == 0 {
		t.Fatalf("%s: got no call that succeeded, want some", name)
	}
	slices.Sort(took)
	fmt.Fprintf(table, "| %-24s | %7d | %8.0f | %8v | %8v |\n", name, clients, float64(len(took))/all.Seconds(),
		took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond))
}
