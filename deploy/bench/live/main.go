// Command live measures how fast the registry sends changes to followers. It compares the registry with a naive
// handler on gin that sends the same bytes from memory. Each runs as one process, one after the other. For each
// number of followers, the command prints the time from the acknowledgement of a change to its arrival at each
// follower's socket, the CPU time, and the memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

// plan has the settings of one measurement.
type plan struct {
	followers int
	rate      int           // changes per second
	during    time.Duration // time during which changes are made
	fields    string        // value of the parameter opt_fields
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("live", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory of the registry's programs")
	counts := flags.String("followers", "100,1000,10000", "numbers of followers")
	rate := flags.Int("rate", 20, "changes a second")
	during := flags.Duration("for", 15*time.Second, "time of each measurement")
	fields := flags.String("fields", "", "the parameter opt_fields of the followers")
	naive := flags.Bool("naive", false, "serve the naive handler; the program starts itself so")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *naive {
		return serveNaive(ctx)
	}
	fmt.Printf("%d changes/s for %v, opt_fields=%q; times from the acknowledgement to the follower's socket\n",
		*rate, *during, *fields)
	fmt.Println("followers  server    deliveries  lost      p50      p99      max  CPU us each  KiB each")
	for text := range strings.SplitSeq(*counts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("the numbers of followers: %w", err)
		}
		p := plan{followers: n, rate: *rate, during: *during, fields: *fields}
		ours := func(ctx context.Context) (server, error) { return startRegistry(ctx, *bin) }
		if err := measure(ctx, p, "registry", ours); err != nil {
			return err
		}
		if err := measure(ctx, p, "naive", startNaive); err != nil {
			return err
		}
	}
	return nil
}

// server is a process that sends changes to followers.
type server interface {
	pid() int
	address() string
	path(fields string) string
	change(ctx context.Context) (id string, err error) // makes a change and returns the id of its event
	stop()
}

// measure runs one measurement, and prints it as a row.
func measure(ctx context.Context, p plan, name string, start func(context.Context) (server, error)) error {
	s, err := start(ctx)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer s.stop()
	for range 20 { // warms up: all code has run once before the measurement
		if _, err := s.change(ctx); err != nil {
			return err
		}
	}
	idle := memoryOf(s.pid())
	f, err := follow(ctx, s, p)
	if err != nil {
		return err
	}
	defer f.close()
	before := cpuOf(s.pid())
	acked, err := makeChanges(ctx, s, p)
	if err != nil {
		return err
	}
	used := cpuOf(s.pid()) - before
	each := float64(memoryOf(s.pid())-idle) / float64(p.followers)
	late := f.lateness(acked)
	want := len(acked) * p.followers
	if len(late) == 0 {
		return fmt.Errorf("%s: no follower got a change", name)
	}
	slices.Sort(late)
	at := func(share float64) string {
		return late[int(share*float64(len(late)-1))].Round(10 * time.Microsecond).String()
	}
	fmt.Printf("%9d  %-8s  %10d  %4d  %7s  %7s  %7s  %11.1f  %8.1f\n", p.followers, name, len(late), want-len(late),
		at(0.5), at(0.99), at(1), float64(used.Microseconds())/float64(len(late)), each)
	return nil
}

// makeChanges makes changes at a steady rate. It returns the time at which each change was acknowledged.
func makeChanges(ctx context.Context, s server, p plan) (map[string]time.Time, error) {
	acked := map[string]time.Time{}
	tick := time.NewTicker(time.Second / time.Duration(p.rate))
	defer tick.Stop()
	for end := time.Now().Add(p.during); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		id, err := s.change(ctx)
		if err != nil {
			return nil, err
		}
		acked[id] = time.Now()
	}
	time.Sleep(2 * time.Second) // time for the last events to arrive
	return acked, nil
}
