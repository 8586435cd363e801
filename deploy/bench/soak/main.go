// Command soak runs a registry under mixed load for several minutes. Every half minute it kills or freezes one
// process. The registry has two gateways, two auth services, an asset service and Redis. The load is 80 % of
// the rate that a short trial reaches at the beginning. The command fails if
//
//   - a request fails while no fault is active;
//   - during a fault, an answer has another error status than 502, or 503 with Retry-After
//     (no answer at all is allowed);
//   - an acknowledged write is lost at the end;
//   - memory or goroutines grow in a process that no fault killed.
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
	trial      = 15 * time.Second // length of the trial that finds the capacity
	load       = 0.8              // part of the capacity that the load uses
	faultEvery = 30 * time.Second // time from the end of a fault to the next fault
	aftermath  = 6 * time.Second  // time that all processes need to notice the end of a fault
	lookEvery  = 2 * time.Second  // time between two samples of memory and goroutines
)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory of the registry's programs")
	during := flags.Duration("for", 10*time.Minute, "length of the run after the trial")
	count := flags.Int("clients", 32, "largest number of concurrent requests")
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
	fmt.Printf("capacity %.0f requests/s; load %.0f requests/s for %v with a fault every %v\n", capacity, rate, *during,
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
	fmt.Printf("%d assets checked\n", assets)
	return errors.Join(c.Err(), lost, health.verdict())
}
