package lean

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

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
