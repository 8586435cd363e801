// Command copy measures how long it takes to copy a whole registry with many assets for the first time, in
// three ways: with pages and a request for each asset, with pages that have all fields, and with a snapshot. It
// also measures how long it takes to make the snapshot. With -data it measures whole copies instead. The registry
// is one process, on the same machine as the readers (deploy/bench/README.md).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"asset-registry/deploy/test/rig/processes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "copy:", err)
		os.Exit(1)
	}
}

// bench has the settings of one run of the benchmark.
type bench struct {
	bin     string // folder with the programs of the registry
	dir     string // directory for all files
	assets  int
	part    int // how many assets are read one by one, at most
	readers int // concurrent requests for single assets
}

func run(ctx context.Context, args []string) (err error) {
	var b bench
	flags := flag.NewFlagSet("copy", flag.ContinueOnError)
	flags.StringVar(&b.bin, "bin", "bin", "folder of the programs")
	flags.StringVar(&b.dir, "dir", "", "folder for the data, which is kept and used again; empty: one that is removed")
	flags.IntVar(&b.assets, "assets", 100_000, "assets of the registry")
	flags.IntVar(&b.part, "part", 100_000, "most assets that are read one by one")
	data := flags.Bool("data", false, "measure whole copies instead")
	flags.IntVar(&b.readers, "readers", 16, "requests for single assets at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "copy"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	if err := b.fill(ctx); err != nil {
		return fmt.Errorf("fill the registry: %w", err)
	}
	if *data {
		return b.measureData(ctx)
	}
	return b.measure(ctx)
}

// measure runs all measurements on one registry. The copy with pages is made before the snapshot exists,
// because otherwise registryctl would use the snapshot.
func (b *bench) measure(ctx context.Context) (err error) {
	if err := os.RemoveAll(filepath.Join(b.data(), "snapshots")); err != nil {
		return err
	}
	r, err := b.start(ctx, b.data())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.rest(ctx); err != nil {
		return err
	}
	single, err := r.measure(func(through string) (int, error) { return b.readSingly(ctx, through) })
	if err != nil {
		return fmt.Errorf("copy by pages and single reads: %w", err)
	}
	pages, err := r.measure(func(through string) (int, error) { return b.sync(ctx, through, "pages") })
	if err != nil {
		return fmt.Errorf("copy by pages: %w", err)
	}
	if _, err := r.makeSnapshot(ctx, b); err != nil {
		return fmt.Errorf("make the snapshot: %w", err)
	}
	snapshot, err := r.measure(func(through string) (int, error) { return b.sync(ctx, through, "snapshot") })
	if err != nil {
		return fmt.Errorf("copy by the snapshot: %w", err)
	}
	fmt.Println("copy                        assets   seconds  assets/s     KiB each  requests/1000  CPU us each" +
		"  speed  bytes")
	single.print("pages and single reads", single)
	pages.print("pages, opt_fields=*", single)
	snapshot.print("snapshot and stream", single)
	return nil
}

func (b *bench) data() string { return filepath.Join(b.dir, "data-"+strconv.Itoa(b.assets)) }

// fill makes the data directory if it does not exist. It creates one asset with the API, and makes the other
// assets as copies of that one.
func (b *bench) fill(ctx context.Context) (err error) {
	if _, err := os.Stat(b.data()); err == nil {
		return nil
	}
	begun := time.Now()
	unfinished := b.data() + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	r, err := b.start(ctx, unfinished)
	if err != nil {
		return err
	}
	example, err := r.createExample(ctx)
	if err := errors.Join(err, r.stop()); err != nil {
		return err
	}
	like := filepath.Join(b.dir, "example.json")
	if err := os.WriteFile(like, example, 0o600); err != nil {
		return err
	}
	fill := exec.CommandContext(ctx, filepath.Join(b.bin, "bench-fill"),
		"-file", filepath.Join(unfinished, "assets.db"), "-like", like, "-assets", strconv.Itoa(b.assets-1))
	if out, err := fill.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := os.Rename(unfinished, b.data()); err != nil {
		return err
	}
	fmt.Printf("%d assets were written in %.0f s\n", b.assets, time.Since(begun).Seconds())
	return nil
}

// sync copies the registry at an address with registryctl, and returns the number of assets in the copy.
func (b *bench) sync(ctx context.Context, address, name string) (int, error) {
	dir := filepath.Join(b.dir, "copy-by-"+name)
	if err := os.RemoveAll(dir); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) // if this fails, the next run removes it
	command := exec.CommandContext(ctx, filepath.Join(b.bin, "registryctl"), "--url", address, "sync", dir, "--once")
	if out, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return b.assets, nil
}

// start starts the registry on a data directory. The registry makes snapshots only on demand.
func (b *bench) start(ctx context.Context, data string, args ...string) (*registry, error) {
	r := &registry{data: data}
	var err error
	if r.addr, r.metrics, err = freeAddresses(); err != nil {
		return nil, err
	}
	r.process, err = processes.Standalone(ctx, b.bin, r.addr, data, &r.output,
		append(args, "--snapshot-interval", "0", "--log-level", "error", "--metrics-addr", r.metrics)...)
	return r, err
}
