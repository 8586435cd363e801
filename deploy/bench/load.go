package main

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

// load is many clients that repeat one request, each on a connection of its
// own that it keeps. It speaks HTTP over plain sockets: a full client costs
// more than the server it measures.
type load struct {
	addr    string
	request []byte
	status  int // what every answer must have
	clients int
}

// result is what a load measured.
type result struct {
	perSecond float64
	p50, p99  time.Duration
}

// run repeats the request for a while and fails on the first wrong answer.
func (l load) run(ctx context.Context, during time.Duration) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	times := make([][]time.Duration, l.clients)
	start := time.Now()
	var g errgroup.Group
	for i := range l.clients {
		g.Go(func() (err error) {
			times[i], err = l.client(ctx)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return result{}, err
	}
	took := time.Since(start)
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) == 0 {
		return result{}, fmt.Errorf("no answer from %s in %v", l.addr, during)
	}
	return result{
		perSecond: float64(len(all)) / took.Seconds(),
		p50:       all[len(all)/2],
		p99:       all[len(all)*99/100],
	}, nil
}

func (l load) client(ctx context.Context) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 32<<10)
	var times []time.Duration
	for ctx.Err() == nil {
		start := time.Now()
		if _, err := conn.Write(l.request); err != nil {
			return nil, fmt.Errorf("send request: %w", err)
		}
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		if resp.StatusCode != l.status {
			text, _ := io.ReadAll(resp.Body) // shown as far as it came
			return nil, fmt.Errorf("answered %d, not %d: %s", resp.StatusCode, l.status, text)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}

// pair runs two loads in turn, round after round, and returns the median of
// each and of their ratio pair by pair, so that a machine whose speed drifts
// does not favour either.
func pair(ctx context.Context, ours, theirs func(context.Context) (result, error), rounds int) (a, b result, ratio float64, err error) {
	var as, bs []result
	var ratios []float64
	for range rounds {
		x, err := ours(ctx)
		if err != nil {
			return a, b, 0, fmt.Errorf("ours: %w", err)
		}
		y, err := theirs(ctx)
		if err != nil {
			return a, b, 0, fmt.Errorf("theirs: %w", err)
		}
		as, bs, ratios = append(as, x), append(bs, y), append(ratios, x.perSecond/y.perSecond)
	}
	byRate := func(x, y result) int { return int(x.perSecond - y.perSecond) }
	slices.SortFunc(as, byRate)
	slices.SortFunc(bs, byRate)
	slices.Sort(ratios)
	return as[rounds/2], bs[rounds/2], ratios[rounds/2], nil
}
