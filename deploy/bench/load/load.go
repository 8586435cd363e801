// Package load puts HTTP servers under load and measures what they make of it.
package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Load is many clients that repeat one request, each on a connection of its
// own that it keeps. It speaks HTTP over plain sockets: a full client costs
// more than the server it measures.
type Load struct {
	Addr    string // host and port
	Request []byte // as it goes over the wire
	Status  int    // what every answer must have
	Clients int
}

// Result is what a load measured.
type Result struct {
	Requests  int
	PerSecond float64
	P50, P99  time.Duration
}

// Run repeats the request for a while and fails on the first wrong answer.
func (l Load) Run(ctx context.Context, during time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	times := make([][]time.Duration, l.Clients)
	start := time.Now()
	var g errgroup.Group
	for i := range l.Clients {
		g.Go(func() (err error) {
			times[i], err = l.client(ctx)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Result{}, err
	}
	took := time.Since(start)
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) == 0 {
		return Result{}, fmt.Errorf("no answer from %s in %v", l.Addr, during)
	}
	return Result{
		Requests:  len(all),
		PerSecond: float64(len(all)) / took.Seconds(),
		P50:       all[len(all)/2],
		P99:       all[len(all)*99/100],
	}, nil
}

func (l Load) client(ctx context.Context) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", l.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 32<<10)
	var times []time.Duration
	for ctx.Err() == nil {
		start := time.Now()
		if _, err := conn.Write(l.Request); err != nil {
			return nil, fmt.Errorf("send request: %w", err)
		}
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		if resp.StatusCode != l.Status {
			text, _ := io.ReadAll(resp.Body) // shown as far as it came
			return nil, fmt.Errorf("answered %d, not %d: %s", resp.StatusCode, l.Status, text)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}
