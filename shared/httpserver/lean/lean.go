// Package lean answers simple requests of HTTP/1.1 with less work than net/http does, and
// leaves all other requests to net/http.
//
// A Listener reads from each connection that it accepts. A request is simple if it is a
// GET or HEAD without a body, its whole head came with one read, and each of its lines is
// plain (parse has the list). For a simple request the Listener calls the same
// http.Handler that net/http would call. At the first request that is not simple, it hands
// the connection over to net/http permanently, with all bytes that it has not used. So
// net/http judges all that is difficult, such as bodies, upgrades, folded lines and
// mistakes.
//
// # Fewer system calls
//
// For each simple request there is one read and one write. net/http needs more. While a handler runs, net/http reads in
// the background, to see whether the client leaves. In addition, Go's Read tries to read before it waits. Here the
// whole life of a connection is one call of syscall.RawConn's Read. This call runs a function of this package again and
// again, and waits whenever the function returns false. If an event comes while the function runs, Go's poller keeps
// the event, so no bytes that arrive during a handler are missed. A timer checks after 100 ms, and then less and less
// often, whether the client has left. If the client has left, the request's context ends.
//
// BenchmarkServe in httpserver with Go 1.26.8, clients in the process, busy cores: a request takes about two
// thirds of the processor time that it takes with net/http, and 6 allocations fewer.
//
// While the call of RawConn's Read lasts, the connection cannot be closed, because Close waits for the end of the call.
// So a connection is closed after the call. A hijacked connection is read and closed after its handler has returned
// (hijacked).
//
// # Safety
//
// FuzzSameAsNetHTTP sends the same bytes, split anywhere, to this package and to
// net/http. The handlers must see equal requests, and the clients equal answers.
package lean

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a Listener. All fields are required.
type Options struct {
	Handler http.Handler
	// HandOver prepares a connection for net/http. rest was already read from conn: the Read of the returned
	// connection must return it first.
	HandOver func(conn net.Conn, rest []byte) net.Conn
	// IsMine reports whether a connection can carry HTTP/1.1. Other connections are handed over immediately.
	IsMine func(net.Conn) bool
	Log    *slog.Logger

	First time.Duration // time limit for the first request of a connection
	Idle  time.Duration // longest idle time between two requests; the actual limit is up to an eighth longer
	Write time.Duration // longest time from a request to its whole answer; the actual limit is up to an eighth longer
}

// Listener answers simple requests on the connections that it accepts. Accept returns the
// connections that net/http must serve.
type Listener struct {
	net.Listener
	options Options
	handed  chan accepted
	closed  chan struct{}
	close   sync.Once

	draining atomic.Bool
	mu       sync.Mutex
	conns    map[*conn]struct{}
	ended    chan struct{} // closed when no connection is left while draining; nil until Shutdown
}

// accepted is a result of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// Listen starts to accept connections of l, until Close.
func Listen(l net.Listener, o Options) *Listener {
	lean := &Listener{
		Listener: l, options: o,
		handed: make(chan accepted), closed: make(chan struct{}), conns: map[*conn]struct{}{},
	}
	go lean.accept()
	return lean
}

func (l *Listener) accept() {
	for {
		conn, err := l.Listener.Accept()
		if err == nil && l.options.IsMine(conn) {
			go l.serve(conn)
			continue
		}
		if l.draining.Load() || !l.hand(conn, err) {
			return
		}
	}
}

// hand gives a result to Accept. It returns false if the listener was closed.
func (l *Listener) hand(conn net.Conn, err error) bool {
	select {
	case l.handed <- accepted{conn, err}:
		return true
	case <-l.closed:
		if conn != nil {
			_ = conn.Close() // net/http accepts no more connections
		}
		return false
	}
}

func (l *Listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.handed:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and stops listening. Connections stay open until Shutdown.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	if l.draining.Load() {
		return nil // Shutdown has already closed the listener
	}
	return l.Listener.Close()
}

func (l *Listener) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining.Load() {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *Listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if l.ended != nil && len(l.conns) == 0 {
		close(l.ended)
		l.ended = nil
	}
}

// Shutdown stops listening and closes idle connections. It waits until the requests on other connections have their
// answers, and closes these connections, too. When ctx ends, it cuts off the connections that are left, and returns an
// error. As in net/http, a new connection may still send its first request. After Shutdown, Accept still returns
// connections until Close, so call the Shutdown of net/http's server last.
func (l *Listener) Shutdown(ctx context.Context) error {
	l.draining.Store(true)
	failed := l.Listener.Close()
	ended := make(chan struct{})
	l.mu.Lock()
	var idle []*conn
	for c := range l.conns {
		if c.state.CompareAndSwap(idleState, overState) {
			idle = append(idle, c)
		}
	}
	if l.ended = ended; len(l.conns) == 0 {
		close(ended)
		l.ended = nil
	}
	l.mu.Unlock()
	for _, c := range idle {
		_ = c.net.Close() // this ends the loop of the connection
	}
	select {
	case <-ended:
		return failed
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.cut()
	}
	return errors.Join(failed, ctx.Err(), errCutOff)
}

// errCutOff is returned by Shutdown when requests did not end in time.
var errCutOff = errors.New("requests under way were cut off")

// IsSupported reports whether this package works on this operating system. On other systems, the package would not
// notice a client that leaves.
const IsSupported = runtime.GOOS == "linux"

// Hijack implements http.Hijacker. A read of the connection waits until the handler has
// returned, and Close takes effect then. The handler itself must neither read nor wait for a read.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c := w.conn
	if c.hijacked != nil {
		return nil, nil, http.ErrHijacked
	}
	if w.begun { // as in net/http, what the handler has written is sent first
		w.send(nil, false)
	}
	h := &hijacked{Conn: c.net, released: make(chan struct{}), closed: make(chan struct{})}
	if err := h.SetDeadline(time.Time{}); err != nil {
		return nil, nil, err
	}
	r := bufio.NewReader(io.MultiReader(bytes.NewReader(w.rest), h))
	if len(w.rest) > 0 {
		_, _ = r.Peek(len(w.rest)) // so that r.Buffered counts these bytes
	}
	c.hijacked = h
	c.watch.stop()
	return h, bufio.NewReadWriter(r, bufio.NewWriter(h)), nil
}

// hijacked is a connection that a handler has taken. As long as the connection's loop runs, reads of it wait. Close
// returns immediately; if the loop still runs, the connection is closed at its end.
type hijacked struct {
	net.Conn
	mu       sync.Mutex
	free     bool          // the loop has ended
	ended    bool          // Close was called
	released chan struct{} // closed once the field `free` is true
	closed   chan struct{} // closed once the field `ended` is true
}

func (h *hijacked) Read(p []byte) (int, error) {
	select {
	case <-h.released:
		return h.Conn.Read(p)
	case <-h.closed:
		return 0, net.ErrClosed
	}
}

func (h *hijacked) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return net.ErrClosed
	}
	h.ended = true
	close(h.closed)
	if h.free {
		return h.Conn.Close()
	}
	return nil
}

// release lets waiting reads go on, and carries out an earlier Close. It is called after the loop.
func (h *hijacked) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = true
	close(h.released)
	if h.ended {
		_ = h.Conn.Close() // Close has returned before, so the error reaches nobody
	}
}
