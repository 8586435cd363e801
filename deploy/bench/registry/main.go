// Command registry compares the registry in one process with a limit that the machine sets:
//
//   - reads and feed pages with a bare net/http handler that returns the same bytes
//     from its own process;
//   - durable creations with bare bbolt batches of the same bytes on the same disk.
//
// It also measures the time from a change until a checkpoint of the public log covers the change, what the dearest
// requests cost, and how long others wait while one address sends them (-dear: only that).
//
// With -against, it instead compares reads, creations and changes in this version and in another version of the
// registry.
//
// Both sides run in turn, several times. The command prints medians and the median of the ratios; it does not
// judge them.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"asset-registry/deploy/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench has the addresses and settings of one run of the benchmark.
type bench struct {
	dir      string        // directory, removed at the end
	registry string        // address of the registry
	bare     string        // address of the bare handler
	during   time.Duration // length of one measurement
	rounds   int           // number of measurements of each side
	clients  int           // number of connections that are used to read
	assets   int           // number of assets for the dearest requests
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory of the programs")
	during := flags.Duration("during", 2*time.Second, "length of one measurement")
	rounds := flags.Int("rounds", 5, "number of measurements of each side")
	clients := flags.Int("clients", 64, "number of connections that read")
	assets := flags.Int("assets", 20_000, "assets for the dearest requests")
	dear := flags.Bool("dear", false, "measure only what requests cost, and how long others wait")
	against := flags.String("against", "", "directory of the programs of another version; compare with it instead")
	bare := flags.String("bare", "",
		"serve the files of this folder and print the address (the benchmark starts itself with this flag)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "registry-bench")
	if err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if *bare != "" {
		return serveBare(ctx, *bare)
	}
	b := bench{dir: dir, during: *during, rounds: *rounds, clients: *clients, assets: *assets}
	fmt.Printf("%d CPUs, %s, %d rounds of %v a side\n\n", runtime.NumCPU(), runtime.Version(), b.rounds, b.during)
	if *dear {
		return b.dear(ctx, *bin)
	}
	var stop func()
	if b.registry, stop, err = b.startRegistry(ctx, *bin, "data"); err != nil {
		return err
	}
	defer stop()
	if *against != "" {
		return b.compare(ctx, *against)
	}
	if err := b.reads(ctx); err != nil {
		return err
	}
	if err := b.creates(ctx); err != nil {
		return err
	}
	if err := b.log(ctx); err != nil {
		return err
	}
	return b.dear(ctx, *bin)
}

// reads compares the registry with the bare handler, for reads of one asset and for reads of a page of 100 entries.
func (b *bench) reads(ctx context.Context) error {
	assets, err := fill(b.registry, 150)
	if err != nil {
		return fmt.Errorf("fill the registry: %w", err)
	}
	bodies := filepath.Join(b.dir, "bodies")
	if err := os.Mkdir(bodies, 0o755); err != nil {
		return fmt.Errorf("create folder of bodies: %w", err)
	}
	paths := []struct{ name, path string }{
		{"asset", "/api/2.5/assets/" + assets[0].id},
		{"page", "/api/2.5/assets?limit=100"},
	}
	for _, p := range paths {
		body, err := get("http://" + b.registry + p.path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(bodies, p.name), body, 0o644); err != nil {
			return fmt.Errorf("write body: %w", err)
		}
	}
	stop, err := b.startBare(ctx, bodies)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("%d clients reading      registry/s   bare/s   ratio   registry p50, p99\n", b.clients)
	for _, p := range paths {
		ours := load.Load{Addr: b.registry, Request: getRequest(p.path), Status: http.StatusOK, Clients: b.clients}
		theirs := load.Load{Addr: b.bare, Request: getRequest("/" + p.name), Status: http.StatusOK, Clients: b.clients}
		x, y, ratio, err := pair(ctx, b.timed(ours), b.timed(theirs), b.rounds)
		if err != nil {
			return fmt.Errorf("read %s: %w", p.name, err)
		}
		fmt.Printf("%-22s %12.0f %8.0f %7.2f   %v, %v\n", p.name, x.PerSecond, y.PerSecond, ratio,
			x.P50.Round(time.Microsecond), x.P99.Round(time.Microsecond))
	}
	return nil
}

// timed returns a function that runs the load for the length of one measurement.
func (b *bench) timed(l load.Load) func(context.Context) (load.Result, error) {
	return func(ctx context.Context) (load.Result, error) { return l.Run(ctx, b.during) }
}

// creates compares the rate of durable creations in the registry with the rate at which bbolt alone writes batches.
func (b *bench) creates(ctx context.Context) error {
	fmt.Printf("\ndurable creations      registry/s  bbolt/s   ratio   registry p50, p99\n")
	for _, clients := range []int{1, 16, 64} {
		ours := load.Load{Addr: b.registry, Request: createRequest(), Status: http.StatusCreated, Clients: clients}
		theirs := func(ctx context.Context) (load.Result, error) { return rawBatches(ctx, b.dir, clients, b.during) }
		x, y, ratio, err := pair(ctx, b.timed(ours), theirs, b.rounds)
		if err != nil {
			return fmt.Errorf("create with %d clients: %w", clients, err)
		}
		fmt.Printf("%-22s %12.0f %8.0f %7.2f   %v, %v\n", fmt.Sprintf("%d clients", clients), x.PerSecond, y.PerSecond,
			ratio, x.P50.Round(time.Microsecond), x.P99.Round(time.Microsecond))
	}
	return nil
}
