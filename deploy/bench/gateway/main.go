// Command gateway compares the gateway with other gateways, in turns, on one machine.
// All have the same upstream, a bare handler that answers each request with 3 KB. All
// keep connections open on both sides. The contenders are
//
//   - our gateway with an API key, rate limits in Redis and one request in a hundred
//     traced;
//   - our gateway with only the key;
//   - Traefik with basic authentication, a rate limit in Redis and the same tracing;
//   - Caddy with a comparison of the key and the same tracing (it has no rate limit);
//   - nginx with a map of keys and limit_req;
//   - the upstream alone.
//
// The command prints a table and judges nothing. It skips and names each contender
// whose program is missing. CPU and memory belong to the contender's processes, not to
// its backends.
package main

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
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
	bodySize = 3000     // bytes of an answer of the upstream
	key      = "broker" // a sandbox key
	path     = "/api/2.5/assets/0123456789abcdef0123456789abcdef"
)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("benchgateway", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory of the registry's programs")
	peers := flags.String("peers", "bin/peers", "directory of the programs of Traefik and Caddy")
	during := flags.Duration("during", 3*time.Second, "length of one measurement")
	rounds := flags.Int("rounds", 7, "number of measurements of each contender")
	clients := flags.Int("clients", 64, "number of connections")
	upstream := flags.Bool("upstream", false, "serve as the upstream (the benchmark starts itself with this flag)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *upstream {
		return serveUpstream(ctx)
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
	fmt.Printf("%d CPUs for contender, upstream and load, %s; %d connections, %d rounds of %v each\n\n",
		runtime.NumCPU(),
		runtime.Version(), *clients, *rounds, *during)
	for range *rounds {
		for _, c := range s.contenders {
			if err := c.measure(ctx, *clients, *during); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	print(s.contenders)
	return nil
}

// request returns the bytes of the request to every contender.
func request() []byte {
	return fmt.Appendf(nil,
		"GET %s HTTP/1.1\r\nHost: registry.example\r\nAuthorization: Basic %s\r\nAccept: application/json\r\n\r\n",
		path, base64.StdEncoding.EncodeToString([]byte(key+":")))
}

// contender is a server under test.
type contender struct {
	name, addr string
	processes  []int // process ids
	results    []measured
}

// measured is the result of one round.
type measured struct {
	load.Result
	cpu time.Duration // CPU time that the contender needs for 10,000 requests
}

// measure runs one round and appends its result.
func (c *contender) measure(ctx context.Context, clients int, during time.Duration) error {
	before, err := c.cpu()
	if err != nil {
		return err
	}
	r, err := load.Load{Addr: c.addr, Request: request(), Status: http.StatusOK, Clients: clients}.Run(ctx, during)
	if err != nil {
		return err
	}
	after, err := c.cpu()
	if err != nil {
		return err
	}
	c.results = append(c.results, measured{r, (after - before) * 10_000 / time.Duration(r.Requests)})
	return nil
}

// print prints medians. A ratio is the median of the rounds' ratios. If the machine slows
// down, the ratio of a round favours no contender.
func print(contenders []*contender) {
	fmt.Printf("%-34s %10s %9s %9s %12s %8s", "", "requests/s", "p50 ms", "p99 ms", "CPU s / 10k", "memory")
	var nginx, traefik *contender
	for _, c := range contenders {
		switch c.name {
		case nginxName:
			nginx = c
		case traefikName:
			traefik = c
		}
	}
	fmt.Printf(" %9s %9s\n", "x nginx", "x Traefik")
	for _, c := range contenders {
		ms := func(get func(measured) time.Duration) float64 {
			return median(c.results, func(m measured) float64 { return get(m).Seconds() * 1000 })
		}
		fmt.Printf("%-34s %10.0f %9.2f %9.2f %12.2f %5.0f MB %9s %9s\n", c.name,
			median(c.results, func(m measured) float64 { return m.PerSecond }),
			ms(func(m measured) time.Duration { return m.P50 }), ms(func(m measured) time.Duration { return m.P99 }),
			ms(func(m measured) time.Duration { return m.cpu })/1000, c.memory(), c.ratio(nginx), c.ratio(traefik))
	}
}

// ratio returns the median of the rounds' ratios of two contenders, or "-" if other is
// nil.
func (c *contender) ratio(other *contender) string {
	if other == nil {
		return "-"
	}
	i := -1
	return fmt.Sprintf("%.2f", median(c.results, func(m measured) float64 {
		i++
		return m.PerSecond / other.results[i].PerSecond
	}))
}

func median(results []measured, of func(measured) float64) float64 {
	values := make([]float64, len(results))
	for i, m := range results {
		values[i] = of(m)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
