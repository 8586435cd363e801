package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"asset-registry/shared/mux"
)

// callsWait is how long a server gets plain HTTP only after it did not know the protocol,
// or could not be reached.
const callsWait = 10 * time.Second

// calls is the connection to a server that carries many requests at once (package mux). One
// is enough: a second one only makes smaller writes. It is opened beside the requests,
// which use plain HTTP meanwhile.
type calls struct {
	server *server

	mu      sync.Mutex
	open    *mux.Conn // nil: none
	dialing bool
	after   time.Time // when the next may be opened
	retired bool
}

// conn returns the open connection, or nil.
func (c *calls) conn() *mux.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil && c.open.IsOpen() {
		return c.open
	}
	c.open = nil
	if !c.dialing && !c.retired && !time.Now().Before(c.after) {
		c.dialing = true
		go c.connect()
	}
	return nil
}

func (c *calls) connect() {
	conn, err := c.dial()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing = false
	switch {
	case err != nil:
		c.after = time.Now().Add(callsWait)
	case c.retired:
		conn.Retire()
	default:
		c.open = conn
	}
}

func (c *calls) dial() (*mux.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*dialTimeout)
	defer cancel()
	plain, err := dial(ctx, c.server.addr, c.server.tls)
	if err != nil {
		return nil, err
	}
	return mux.Dial(ctx, plain, c.server.addr)
}

// isOpen reports whether requests go over the connection.
func (c *calls) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open != nil && c.open.IsOpen()
}

// retire lets the connection end after the requests under way.
func (c *calls) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
	if c.open != nil {
		c.open.Retire()
		c.open = nil
	}
}

// exchange sends a request. It returns false if the server did not take it, and plain HTTP
// must carry it, with *body. The meaning of progress is that of server.exchange: a
// connection that was lost with all its requests is one that the server had closed.
func (c *calls) exchange(r *http.Request, body *io.ReadCloser) (_ *http.Response, p progress, done bool, err error) {
	conn := c.conn()
	if conn == nil {
		return nil, notSent, false, nil
	}
	sent, watched := r, &watchedBody{ReadCloser: *body}
	if hasBody(r) {
		sent = r.WithContext(r.Context()) // a copy, since a RoundTripper must not change its request
		sent.Body = watched
	}
	resp, err := conn.RoundTrip(sent)
	switch {
	case err == nil:
		b := &calledBody{ReadCloser: resp.Body, server: c.server}
		if resp.Body == http.NoBody {
			_ = b.Close()
		} else {
			resp.Body = b
		}
		return resp, sentOnNew, true, nil
	case (errors.Is(err, mux.ErrNotTaken) || errors.Is(err, mux.ErrNotPlain)) && !watched.used:
		return nil, notSent, false, nil
	case errors.Is(err, mux.ErrNotTaken) && r.GetBody != nil: // the server drains, and ignored the body
		*body, err = r.GetBody()
		return nil, notSent, err != nil, err
	case errors.Is(err, mux.ErrLost) && r.Context().Err() == nil:
		return nil, sentOnReused, true, staleConnError{err}
	default:
		return nil, sentOnNew, true, err
	}
}

// watchedBody tells whether a request's body was used.
type watchedBody struct {
	io.ReadCloser
	used bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.used = true
	return b.ReadCloser.Read(p)
}

// calledBody is the body of an answer. Its end counts the request as done.
type calledBody struct {
	io.ReadCloser
	server *server
	ended  bool
}

func (b *calledBody) end() {
	if !b.ended {
		b.ended = true
		b.server.busy.Add(-1)
	}
}

func (b *calledBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *calledBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// Outlast replaces the deadline of the request's context by end, for the rest of the body.
func (b *calledBody) Outlast(end time.Time) {
	if body, ok := b.ReadCloser.(interface{ Outlast(time.Time) }); ok {
		body.Outlast(end)
	}
}
