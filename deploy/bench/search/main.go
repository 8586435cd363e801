// Command search measures the search service on a registry of many assets. It measures the time and the memory
// for building the index, and the size of the index. Then it measures the latency of searches with five facets,
// the latency of pages of the site, and the time until a search finds a change. Everything runs on one machine
// (deploy/bench/README.md).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"asset-registry.example/client"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// bench has the settings and servers of one run of the benchmark.
type bench struct {
	bin, dir, like string
	assets, rate   int
	budget         int64
	again          bool
	lasts, within  time.Duration

	of, addr string // addresses of the registry and of the search service
	registry *client.Client
	output   processes.Output
}

func run(ctx context.Context, args []string) (err error) {
	var b bench
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	flags.StringVar(&b.bin, "bin", "bin", "folder of the programs")
	flags.StringVar(&b.dir, "dir", "", "folder for the data, which is kept and used again; empty: one that is removed")
	flags.StringVar(&b.like, "like", "deploy/bench/copy/asset.json", "file with the example of an asset")
	flags.IntVar(&b.assets, "assets", 100_000, "assets of the registry")
	flags.IntVar(&b.rate, "rate", 50, "searches a second")
	flags.Int64Var(&b.budget, "memory", 1_000_000_000, "bytes that the search service may use; 0: all of the machine")
	flags.DurationVar(&b.lasts, "lasts", 30*time.Second, "duration of the searches")
	flags.BoolVar(&b.again, "again", false, "search in the index that an earlier run left in the folder of -dir")
	flags.DurationVar(&b.within, "within", time.Hour, "longest time to build the index")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "search"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	if b.of, err = porttest.FreeAddr(); err != nil {
		return err
	}
	if b.addr, err = porttest.FreeAddr(); err != nil {
		return err
	}
	if b.registry, err = client.New(client.Config{URL: "http://" + b.of, Key: "broker"}); err != nil {
		return err
	}
	if err := b.fill(ctx); err != nil {
		return fmt.Errorf("fill the registry: %w", err)
	}
	return b.measure(ctx)
}

func (b *bench) data() string { return filepath.Join(b.dir, "data-"+strconv.Itoa(b.assets)) }

// start starts the registry on a data directory. The registry makes snapshots only on demand.
func (b *bench) start(ctx context.Context, data string) (*processes.Process, error) {
	return processes.Standalone(ctx, b.bin, b.of, data, &b.output, "--no-search", "--snapshot-interval", "0",
		"--log-level", "error")
}

// fill makes the data directory if it does not exist. It creates one asset with the API, makes the other assets
// as copies of that one, and then makes a snapshot.
func (b *bench) fill(ctx context.Context) error {
	if _, err := os.Stat(b.data()); err == nil {
		return nil
	}
	unfinished := b.data() + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	p, err := b.start(ctx, unfinished)
	if err != nil {
		return err
	}
	created, err := b.publish(ctx, nil)
	if err != nil {
		return errors.Join(err, p.Stop())
	}
	example, err := b.registry.GetJSON(ctx, created)
	if err := errors.Join(err, p.Stop()); err != nil {
		return err
	}
	like := filepath.Join(b.dir, "example.json")
	if err := os.WriteFile(like, fmt.Appendf(nil, `{"data":%s}`, example), 0o600); err != nil {
		return err
	}
	fill := exec.CommandContext(ctx, filepath.Join(b.bin, "bench-fill"),
		"-file", filepath.Join(unfinished, "assets.db"), "-like", like, "-assets", strconv.Itoa(b.assets-1))
	if out, err := fill.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return os.Rename(unfinished, b.data())
}

// publish creates an asset from the example, replaces the fields that the argument `other` has, and publishes it.
// It returns the asset's id.
func (b *bench) publish(ctx context.Context, other client.Fields) (id string, err error) {
	text, err := os.ReadFile(b.like)
	if err != nil {
		return "", err
	}
	var body struct {
		Data client.Fields `json:"data"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return "", fmt.Errorf("read the example: %w", err)
	}
	for name, value := range other {
		body.Data[name] = value
	}
	created, err := b.registry.CreateFields(ctx, body.Data, "")
	if err != nil {
		return "", err
	}
	_, err = b.registry.Publish(ctx, created.Asset.ID, client.Write{Token: created.Access.Token})
	return created.Asset.ID, err
}

// measure runs all measurements.
func (b *bench) measure(ctx context.Context) (err error) {
	p, err := b.start(ctx, b.data())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	snapshot, err := b.registry.Snapshot(ctx)
	if client.IsNotFound(err) || err == nil && snapshot.Assets < int64(b.assets) {
		command := exec.CommandContext(ctx, filepath.Join(b.bin, "registry"), "snapshot", "--data", b.data())
		made, failed := command.CombinedOutput()
		if failed != nil {
			return fmt.Errorf("%w: %s", failed, made)
		}
		snapshot, err = b.registry.Snapshot(ctx)
	}
	if err != nil {
		return err
	}
	index := filepath.Join(b.dir, "index")
	if !b.again {
		if err := os.RemoveAll(index); err != nil {
			return err
		}
	}
	service, err := b.build(ctx, index, snapshot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Stop()) }()
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.memory(service.ID(), "after the searches")
}
