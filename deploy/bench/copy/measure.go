package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry.example/client"
)

// result has the cost of a copy.
type result struct {
	assets   int
	took     time.Duration
	cpu      time.Duration // CPU time of the registry
	bytes    int64         // bytes on the wire, in both directions
	requests int64
}

// print prints the result as a line of the table. The last two columns are ratios to the result of another
// copy.
func (r result) print(name string, to result) {
	fmt.Printf("%-24s %9d %9.1f %9.0f %12.2f %14.1f %12.1f %6.1f %6.2f\n", name, r.assets, r.took.Seconds(), r.speed(),
		r.bytesEach()/1024, 1000*float64(r.requests)/float64(r.assets),
		float64(r.cpu.Microseconds())/float64(r.assets), r.speed()/to.speed(), r.bytesEach()/to.bytesEach())
}

func (r result) speed() float64     { return float64(r.assets) / r.took.Seconds() }
func (r result) bytesEach() float64 { return float64(r.bytes) / float64(r.assets) }

// measure calls copyThrough and measures the copy that it makes. copyThrough must make the copy through the given
// address, and return the number of assets.
func (r *registry) measure(copyThrough func(address string) (int, error)) (result, error) {
	ctx := context.Background()
	wire, err := newWire(r.addr)
	if err != nil {
		return result{}, err
	}
	defer wire.close()
	requests, err1 := r.requests(ctx)
	before, err2 := usageOf(r.process.ID())
	if err := errors.Join(err1, err2); err != nil {
		return result{}, err
	}
	begun := time.Now()
	assets, err := copyThrough(wire.address())
	took := time.Since(begun)
	if err != nil {
		return result{}, err
	}
	after, err := usageOf(r.process.ID())
	if err != nil {
		return result{}, err
	}
	wire.close()
	all, err := r.requests(ctx)
	return result{assets, took, after.cpu - before.cpu, wire.bytes.Load(), all - requests}, err
}

// wire forwards connections to a server, and counts their bytes.
type wire struct {
	listener net.Listener
	to       string
	bytes    atomic.Int64
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newWire(to string) (*wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: listener, to: to}
	w.running.Go(w.accept)
	return w, nil
}

func (w *wire) address() string { return "http://" + w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = from.Close() // the client sees that the connection is closed
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, from, to)
		w.mu.Unlock()
		w.running.Go(func() { w.pass(to, from) })
		w.running.Go(func() { w.pass(from, to) })
	}
}

// pass copies the bytes of one direction of a connection. The kernel moves them (splice(2)).
func (w *wire) pass(to, from net.Conn) {
	n, _ := io.Copy(to, from) // an error only means that the connection has ended
	w.bytes.Add(n)
	_ = to.Close()
	_ = from.Close()
}

// close closes all connections. It may be called twice.
func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
	w.mu.Unlock()
	w.running.Wait()
}

// readSingly reads pages of the feed that have only ids, and then each asset with a separate request. It stores
// nothing, so it is faster than a real copy.
func (b *bench) readSingly(ctx context.Context, address string) (int, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = b.readers
	defer transport.CloseIdleConnections()
	c, err := client.New(client.Config{URL: address, Transport: transport})
	if err != nil {
		return 0, err
	}
	ids := make(chan string, 1000)
	group, ctx := errgroup.WithContext(ctx)
	assets := min(b.assets, b.part)
	group.Go(func() error {
		defer close(ids)
		left := assets
		for page, err := range c.Pages(ctx, client.Feed{Limit: 1000, Mode: client.AllModes}) {
			if err != nil {
				return err
			}
			for _, a := range page.Assets {
				if left == 0 {
					return nil
				}
				left--
				select {
				case ids <- a.ID:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		if left > 0 {
			return fmt.Errorf("the feed ends %d assets early", left)
		}
		return nil
	})
	for range b.readers {
		group.Go(func() error {
			for id := range ids {
				if _, err := c.GetJSON(ctx, id); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return assets, group.Wait()
}
