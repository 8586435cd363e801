package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout = 500 * time.Millisecond // of a connection
	idleTimeout = time.Minute            // of a connection that nobody uses: half of what our servers allow
	freshTime   = 5 * time.Millisecond   // after use, for which a connection is taken to be open
	maxIdle     = 256                    // connections kept to a server
	bufferSize  = 8 << 10                // bytes of a connection's two buffers: an answer of an asset fits
)

// server is one of a service's servers.
type server struct {
	pool    *Pool
	addr    string // host and port
	tls     *tls.Config
	from    source
	ready   atomic.Bool
	busy    atomic.Int64 // requests under way
	breaker breaker

	mu      sync.Mutex
	idle    []*conn // the last used last
	retired bool    // no more is kept
}

func newServer(p *Pool, from source, host string) *server {
	s := &server{pool: p, addr: net.JoinHostPort(host, from.port), tls: from.tls, from: from}
	s.ready.Store(true) // until it says otherwise
	return s
}

func (s *server) better(than *server) bool {
	if ready := s.ready.Load(); ready != than.ready.Load() {
		return ready
	}
	return s.busy.Load() < than.busy.Load()
}

// sent tells how far a request without an answer has come.
type sent int

const (
	notSent         sent = iota
	onOldConnection      // which the server may have closed before
	onNewConnection
)

// exchange sends a request and returns the answer, or how far it has come
// without one. With sure, a connection that was used before is looked at first.
func (s *server) exchange(r *http.Request, body io.ReadCloser, sure bool) (*http.Response, sent, error) {
	s.busy.Add(1)
	c, used, err := s.conn(r.Context(), sure)
	if err != nil {
		s.busy.Add(-1)
		return nil, notSent, err
	}
	resp, answering, err := c.exchange(r, body)
	if err == nil {
		return resp, onNewConnection, nil
	}
	s.busy.Add(-1)
	if used && !answering && r.Context().Err() == nil {
		s.drop(time.Now()) // the others are as old
		return nil, onOldConnection, errOldConnection{err}
	}
	return nil, onNewConnection, err
}

// errOldConnection is of a connection that the server closed while it was used
// again. It says nothing about the server.
type errOldConnection struct{ error }

func (e errOldConnection) Unwrap() error { return e.error }

// judge tells the breaker how a request has ended. A client that left and an old
// connection are no failures of the server.
func (s *server) judge(ctx context.Context, err error) {
	if err == nil {
		s.breaker.succeed()
		return
	}
	_, old := errors.AsType[errOldConnection](err)
	if old || errors.Is(ctx.Err(), context.Canceled) {
		s.breaker.abandon()
		return
	}
	if s.breaker.fail(time.Now()) {
		s.pool.opened.Add(ctx, 1, s.pool.of)
		s.pool.log.Warn("a server is left out", "service", s.pool.name, "server", s.addr, "error", err)
	}
}

// conn returns a connection, an idle one if there is one. With sure, or after
// some time without use, it is one that the server has not closed up to now.
func (s *server) conn(ctx context.Context, sure bool) (_ *conn, used bool, err error) {
	now := time.Now()
	oldest, fresh := now.Add(-idleTimeout), now.Add(-freshTime)
	for {
		s.mu.Lock()
		last := len(s.idle) - 1
		if last < 0 {
			s.mu.Unlock()
			break
		}
		c := s.idle[last]
		s.idle[last] = nil
		s.idle = s.idle[:last]
		s.mu.Unlock()
		if c.since.Before(oldest) || (sure || c.since.Before(fresh)) && !c.alive() {
			c.net.Close()
			continue
		}
		return c, true, nil
	}
	plain, err := dial(ctx, s.addr, s.tls)
	if err != nil {
		return nil, false, err
	}
	return &conn{server: s, net: plain, r: bufio.NewReaderSize(plain, bufferSize), w: bufio.NewWriterSize(plain, bufferSize)}, false, nil
}

// keep takes back a connection that can be used again.
func (s *server) keep(c *conn) {
	c.since = time.Now()
	s.mu.Lock()
	kept := !s.retired && len(s.idle) < maxIdle
	if kept {
		s.idle = append(s.idle, c)
	}
	s.mu.Unlock()
	if !kept {
		c.net.Close()
	}
}

// drop closes the idle connections that have not been used since a time.
func (s *server) drop(since time.Time) {
	s.mu.Lock()
	n := 0
	for n < len(s.idle) && s.idle[n].since.Before(since) {
		n++
	}
	old := append([]*conn(nil), s.idle[:n]...)
	s.idle = append(s.idle[:0], s.idle[n:]...)
	s.mu.Unlock()
	for _, c := range old {
		c.net.Close()
	}
}

func (s *server) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.drop(time.Now().Add(time.Hour))
}

// check asks the server whether it is ready.
func (s *server) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, _, err := s.exchange(r, nil, true)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxCheck)); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	return nil
}

// breaker leaves out a server that has failed some times in a row.
type breaker struct {
	failures atomic.Int64
	until    atomic.Int64 // Unix ns, while it is open; in the past: one may try
	trying   atomic.Bool
}

const (
	maxFailures = 5
	openFor     = time.Second
)

func (b *breaker) isOpen(now time.Time) bool {
	return b.failures.Load() >= maxFailures && (now.UnixNano() < b.until.Load() || b.trying.Load())
}

// admit tells whether a request may be sent; of those that try a server that
// has failed, only one may.
func (b *breaker) admit(now time.Time) bool {
	if b.failures.Load() < maxFailures {
		return true
	}
	return now.UnixNano() >= b.until.Load() && b.trying.CompareAndSwap(false, true)
}

func (b *breaker) succeed() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
		b.trying.Store(false)
	}
}

func (b *breaker) abandon() { b.trying.Store(false) }

// fail counts a failure, and tells whether it has opened the breaker.
func (b *breaker) fail(now time.Time) bool {
	b.until.Store(now.Add(openFor).UnixNano())
	b.trying.Store(false)
	return b.failures.Add(1) == maxFailures
}
