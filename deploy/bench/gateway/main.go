// Command gateway compares the registry's gateway with other gateways, in turns, on one machine. All use the
// same upstream, a bare handler that answers each request with an asset of 3 KB. All keep connections open on
// both sides. The contenders are
//
//   - our gateway with an API key, rate limits in Redis and one request in a hundred traced;
//   - our gateway with only the key;
//   - the registry in one process with the key, the limits and the traces, which answers with
//     the same asset from its memory;
//   - Traefik with basic authentication, a rate limit in Redis and the same tracing;
//   - Caddy with a comparison of the key and the same tracing (it has no rate limit);
//   - nginx with a map of keys and limit_req;
//   - nginx with these settings and a cache, which answers from its cache;
//   - the upstream alone.
//
// The command prints a table for each number of connections; it does not judge the figures. If the program of a
// contender is missing, the command skips the contender and says so. CPU, memory and system calls are measured for
// the contender's processes, without its backends. A contender that answers from memory or from a cache must not
// forward any request to the upstream, or to the asset service in the same process. If it forwards one, its
// measurement fails.
package main

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/deploy/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchgateway:", err)
		os.Exit(1)
	}
}

const (
	key = "broker" // API key of a sandbox

	readingsPath = "/readings" // where the upstream reports how many requests for the asset it received
)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("benchgateway", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory of the registry's programs")
	peers := flags.String("peers", "bin/peers", "directory of the programs of Traefik and Caddy")
	during := flags.Duration("during", 2*time.Second, "length of one measurement")
	rounds := flags.Int("rounds", 12, "number of measurements of each contender, for each number of connections")
	clients := flags.String("clients", "16,64,256", "numbers of connections")
	only := flags.String("only", "", "regular expression: measure only the contenders whose names it matches")
	upstream := flags.Bool("upstream", false, "serve as the upstream (the benchmark starts itself with this flag)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *upstream {
		return serveUpstream(ctx)
	}
	var counts []int
	for text := range strings.SplitSeq(*clients, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-clients: got %q, want numbers separated by commas", *clients)
		}
		counts = append(counts, n)
	}
	names, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp("", "benchgateway")
	if err != nil {
		return fmt.Errorf("create folder of settings: %w", err)
	}
	defer os.RemoveAll(dir)
	s := &stage{dir: dir, bin: *bin, peers: *peers}
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	s.contenders = slices.DeleteFunc(s.contenders, func(c *contender) bool { return !names.MatchString(c.name) })
	for _, c := range s.contenders {
		if err := c.await(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	fmt.Printf("%d CPUs for contender, upstream and load, %s; medians of %d rounds of %v each\n",
		runtime.NumCPU(), runtime.Version(), *rounds, *during)
	for range *rounds {
		for _, n := range counts {
			for _, c := range s.contenders {
				err := c.measure(ctx, n, *during)
				if err != nil && ctx.Err() == nil { // try again: something else may have used the machine
					fmt.Printf("%s: again, after %v\n", c.name, err)
					if err = c.await(ctx); err == nil {
						err = c.measure(ctx, n, *during)
					}
				}
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
			}
		}
	}
	for _, n := range counts {
		print(s.contenders, n)
	}
	fmt.Println("\n" + goals)
	return nil
}

// goals lists the minimum ratios that the project wants to reach.
const goals = "Goals: all on, 0.6 x nginx and 2.5 x Traefik up to 64 connections, 0.55 and 2.4 at 256;\n" +
	"from memory, 1.2 x nginx.\n" +
	"reads + writes: system calls that /proc/PID/io counts. It leaves out recv and send, which nginx uses for a part."

// request returns the bytes of a GET request for path.
func request(path string) []byte {
	return fmt.Appendf(nil,
		"GET %s HTTP/1.1\r\nHost: registry.example\r\nAuthorization: Basic %s\r\nAccept: application/json\r\n\r\n",
		path, base64.StdEncoding.EncodeToString([]byte(key+":")))
}

// contender is a server under test.
type contender struct {
	name, addr string
	processes  []int // process ids
	request    []byte
	forwarded  func() (int, error) // counts the forwarded requests, which must be 0; nil if any number is right
	results    map[int][]measured  // results of the rounds, by number of connections
}

// measured is the result of one round.
type measured struct {
	load.Result
	cpu   time.Duration // CPU time that the contender used per request
	calls float64       // calls to read or write that the contender made per request
}

// await waits up to 20 s until the contender gives the expected answer.
func (c *contender) await(ctx context.Context) (err error) {
	for range 100 {
		if _, err = c.load(ctx, 1, 100*time.Millisecond); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// load repeats the request for the given time. It fails if the contender forwards a request although it must not.
func (c *contender) load(ctx context.Context, clients int, during time.Duration) (load.Result, error) {
	asset := load.Load{Addr: c.addr, Request: c.request, Status: http.StatusOK, Clients: clients}
	if c.forwarded == nil {
		return asset.Run(ctx, during)
	}
	before, err := c.forwarded()
	if err != nil {
		return load.Result{}, err
	}
	r, err := asset.Run(ctx, during)
	if err != nil {
		return load.Result{}, err
	}
	after, err := c.forwarded()
	if err == nil && after != before {
		err = fmt.Errorf("got %d of %d requests forwarded, want none", after-before, r.Requests)
	}
	return r, err
}

// measure runs one round, and appends the result to c.results.
func (c *contender) measure(ctx context.Context, clients int, during time.Duration) error {
	before, err := c.usage()
	if err != nil {
		return err
	}
	r, err := c.load(ctx, clients, during)
	if err != nil {
		return err
	}
	after, err := c.usage()
	if err != nil {
		return err
	}
	c.results[clients] = append(c.results[clients], measured{
		r, (after.cpu - before.cpu) / time.Duration(r.Requests), float64(after.calls-before.calls) / float64(r.Requests),
	})
	return nil
}

// print prints the medians for the given number of connections. A ratio is the median of the ratios of the rounds.
// If the machine becomes slower, both sides of a round become slower, so the ratio stays fair.
func print(contenders []*contender, clients int) {
	fmt.Printf("\n%-36s %10s %8s %8s %8s %14s %7s %8s %9s\n", fmt.Sprintf("%d connections", clients), "requests/s",
		"p50 ms", "p99 ms", "CPU us", "reads + writes", "memory", "x nginx", "x Traefik")
	for _, c := range contenders {
		of := func(get func(measured) float64) float64 { return median(c.results[clients], get) }
		ms := func(get func(measured) time.Duration) float64 {
			return of(func(m measured) float64 { return get(m).Seconds() * 1000 })
		}
		fmt.Printf("%-36s %10.0f %8.2f %8.2f %8.1f %14.2f %4.0f MB %8s %9s\n", c.name,
			of(func(m measured) float64 { return m.PerSecond }),
			ms(func(m measured) time.Duration { return m.P50 }), ms(func(m measured) time.Duration { return m.P99 }),
			ms(func(m measured) time.Duration { return m.cpu })*1000, of(func(m measured) float64 { return m.calls }),
			c.memory(), c.ratio(named(contenders, nginxName), clients), c.ratio(named(contenders, traefikName), clients))
	}
}

// named returns the contender with the given name, or nil if there is no such contender.
func named(contenders []*contender, name string) *contender {
	i := slices.IndexFunc(contenders, func(c *contender) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return contenders[i]
}

// ratio returns the ratio of two contenders: the median of the ratios of the rounds. If other is nil, it returns "-".
func (c *contender) ratio(other *contender, clients int) string {
	if other == nil {
		return "-"
	}
	i := -1
	return fmt.Sprintf("%.2f", median(c.results[clients], func(m measured) float64 {
		i++
		return m.PerSecond / other.results[clients][i].PerSecond
	}))
}

func median(results []measured, of func(measured) float64) float64 {
	values := make([]float64, len(results))
	for i, m := range results {
		values[i] = of(m)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
