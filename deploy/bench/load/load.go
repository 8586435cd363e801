// Package load repeats one HTTP request as fast as a server answers, and measures the
// rate and the latency. The benchmarks of the registry and of the gateway use it.
package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// Load describes clients that repeat a request. Each client has its own connection. A client writes to a plain
// socket and reads the heads of answers itself, because the client of net/http uses more CPU time than the
// server under test.
type Load struct {
	Addr    string // host and port
	Request []byte // bytes of the request
	Status  int    // expected status of every answer
	Clients int    // number of clients

	// Next returns the bytes of request n of a client; both numbers start at 0. If Next is nil, every request has
	// the bytes of the field Request.
	Next func(client, n int) []byte
}

// Result is the outcome of one measurement.
type Result struct {
	Requests  int           // number of answered requests; 0: they were not counted
	PerSecond float64       // answered requests per second
	P50, P99  time.Duration // percentiles of the latency
}

// Run repeats the request for the given time. It fails if an answer has an unexpected status, if a connection
// fails, or if no answer arrives.
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

// client repeats the request of client i on one connection until ctx is done. It returns the latency of each
// request.
func (l Load) client(ctx context.Context, i int) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", l.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 64<<10)
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
		h, err := readHead(reader)
		if err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		body := h.body(reader)
		if h.status != l.Status {
			text, _ := io.ReadAll(body) // on an error, the part that was read is enough for the message
			return nil, fmt.Errorf("got status %d, want %d: %s", h.status, l.Status, text)
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		if h.chunked {
			if _, err := readHead(reader); err != nil { // trailers have the form of a head's fields
				return nil, fmt.Errorf("read trailers: %w", err)
			}
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}

// head has the fields of an answer's head that determine where the body ends.
type head struct {
	status  int // 0 for trailers
	length  int64
	chunked bool
}

// readHead reads a head up to its empty line. It does not use http.ReadResponse: that function uses about the CPU
// time that a fast server uses for the whole answer, so the benchmark could not show how fast the server is.
func readHead(r *bufio.Reader) (h head, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return h, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return h, nil
		}
		if status, is := bytes.CutPrefix(line, []byte("HTTP/1.1 ")); is && len(status) >= 3 {
			if h.status, err = strconv.Atoi(string(status[:3])); err != nil {
				return h, fmt.Errorf("status: %w", err)
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			if h.length, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err != nil {
				return h, fmt.Errorf("length of the body: %w", err)
			}
		case len(name) == len("Transfer-Encoding") && bytes.EqualFold(name, []byte("Transfer-Encoding")):
			h.chunked = true
		}
	}
}

// body returns the body of an answer. It is empty if HTTP allows the answer no body.
func (h head) body(r *bufio.Reader) io.Reader {
	switch {
	case h.status == http.StatusNotModified || h.status == http.StatusNoContent:
		return http.NoBody
	case h.chunked:
		return httputil.NewChunkedReader(r)
	default:
		return io.LimitReader(r, h.length)
	}
}
