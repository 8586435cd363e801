// Command soak keeps a registry of two gateways, two auth services, an asset
// service and a Redis under mixed load for some minutes, at four fifths of what
// they have just shown to bear, and breaks one of them every half minute: kills
// it, or freezes it. It fails if
//
//   - a request is answered otherwise than the failure rules allow: done, or,
//     while something is broken and shortly after, 503 with Retry-After, or not
//     at all by a gateway that was killed;
//   - an acknowledged write is gone at the end;
//   - memory or goroutines of what was not killed have grown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/upstream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

const (
	trial      = 15 * time.Second // of what the registry can bear
	load       = 0.8              // of that
	faultEvery = 30 * time.Second
	aftermath  = 6 * time.Second // until all have noticed that what was broken is well
	lookEvery  = 2 * time.Second // at memory and goroutines
)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory of our programs")
	during := flags.Duration("for", 10*time.Minute, "length of the load")
	count := flags.Int("clients", 32, "requests under way at most")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := &fleet{bin: *bin, dir: dir}
	defer f.stop()
	if err := f.start(ctx); err != nil {
		return err
	}
	balancer, err := upstream.New(upstream.Config{Name: "gateway", URLs: f.gateways, Log: slog.New(slog.DiscardHandler),
		Meter: new(telemetry.Telemetry).Meter()})
	if err != nil {
		return err
	}
	defer balancer.Close()
	c := clients.New("http://gateway", balancer, f.troubled)

	c.Run(ctx, *count, 0, trial)
	capacity := float64(c.Total()) / trial.Seconds()
	rate := capacity * load
	fmt.Printf("%.0f requests/s can be borne; %.0f for %v, and something is broken every %v\n", capacity, rate, *during,
		faultEvery)

	ctx, cancel := context.WithTimeout(ctx, *during)
	defer cancel()
	var beside sync.WaitGroup
	health := &health{fleet: f}
	beside.Go(func() { f.breakAll(ctx, c) })
	beside.Go(func() { health.watch(ctx) })
	c.Run(ctx, *count, rate, *during)
	beside.Wait()
	if err := f.mend(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	fmt.Print(c)
	assets, lost := c.CheckKept(context.WithoutCancel(ctx))
	fmt.Printf("%d assets read back\n", assets)
	return errors.Join(c.Err(), lost, health.verdict())
}
