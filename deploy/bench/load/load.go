// Package load repeats one HTTP request as fast as a server answers, and measures the
// rate and the latency. The benchmarks of the registry and of the gateway use it.
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

// Load describes clients that repeat a request. Each client has its own connection.
// It writes to a plain socket, because the client of net/http needs more CPU than the
// server under test.
type Load struct {
	Addr    string // host and port
	Request []byte // bytes of the request
	Status  int    // expected status of every answer
	Clients int    // number of clients

	// Next returns the bytes of the n-th request of a client, both from 0. nil: each is Request.
	Next func(client, n int) []byte
}

// Result is the outcome of one measurement.
type Result struct {
	Requests  int           // number of answered requests; 0 if not counted
	PerSecond float64       // rate
	P50, P99  time.Duration // percentiles of the latency
}

// Run repeats the request for the duration during. It fails if an answer has another
// status, if a connection fails, or if no answer arrives.
func (l Load) Run(ctx context.Context, during time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	times := make([][]time.Duration, l.Clients)
	start := time.Now()
	var g errgroup.Group
	for i := range l.Clients {
		g.Go(func() (err error) {
			times[i], err = l.client(ctx, i)
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

// client repeats the request of client i on one connection until ctx is done. It
// returns the latency of each request.
func (l Load) client(ctx context.Context, i int) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", l.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 32<<10)
	var times []time.Duration
	for n := 0; ctx.Err() == nil; n++ {
		request := l.Request
		if l.Next != nil {
			request = l.Next(i, n)
		}
		start := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, fmt.Errorf("send request: %w", err)
		}
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		if resp.StatusCode != l.Status {
			text, _ := io.ReadAll(resp.Body) // the error message works with any part of the text
			return nil, fmt.Errorf("got status %d, want %d: %s", resp.StatusCode, l.Status, text)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}
