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
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout = 500 * time.Millisecond // short, so that a dead server costs little time
	idleTimeout = time.Minute            // half of the time that our servers keep an idle connection
	freshTime   = 5 * time.Millisecond   // time after its last use for which a connection counts as open
	maxIdle     = 256                    // maximum number of idle connections to one server
	bufferSize  = 8 << 10                // bytes of a buffer; a connection has two buffers; a typical asset fits into one
)

// server is one server of a service.
type server struct {
	pool    *Pool
	addr    string // host and port
	tls     *tls.Config
	from    source
	made    time.Time
	heard   bool // a check has succeeded; only the watch uses it
	told    bool // the log has that the server is not ready; only the watch uses it
	ready   atomic.Bool
	busy    atomic.Int64 // requests under way
	breaker breaker

	mu      sync.Mutex
	idle    []*conn // idle connections, the most recently used last
	retired bool    // if true, the method `keep` closes every connection that it gets
}

// newServer returns a server that counts as ready until a check fails.
func newServer(p *Pool, from source, host string) *server {
	s := &server{pool: p, addr: net.JoinHostPort(host, from.port), tls: from.tls, from: from, made: time.Now()}
	s.ready.Store(true)
	return s
}

func (s *server) isBetter(than *server) bool {
	if ready := s.ready.Load(); ready != than.ready.Load() {
		return ready
	}
	return s.busy.Load() < than.busy.Load()
}

// progress says how far a request without an answer got.
type progress int

const (
	notSent      progress = iota
	sentOnReused          // sent on a connection that the server may have closed before
	sentOnNew
)

// connCheck says whether an idle connection is checked before it is used.
type connCheck bool

const (
	anyConn  connCheck = false // the connection is not checked if it was used a moment ago
	openConn connCheck = true  // the connection is always checked
)

// exchange sends a request and returns the answer. Without an answer it returns
// how far the request got.
func (s *server) exchange(r *http.Request, body io.ReadCloser, check connCheck) (*http.Response, progress, error) {
	s.busy.Add(1)
	c, reused, err := s.conn(r.Context(), check)
	if err != nil {
		s.busy.Add(-1)
		return nil, notSent, err
	}
	resp, answering, err := c.exchange(r, body)
	if err == nil {
		return resp, sentOnNew, nil
	}
	s.busy.Add(-1)
	if reused && !answering && r.Context().Err() == nil {
		s.closeIdle(time.Now()) // the other idle connections are probably stale too
		return nil, sentOnReused, staleConnError{err}
	}
	return nil, sentOnNew, err
}

// staleConnError wraps the error of a reused connection. The server had probably closed the connection before the
// request came, so the error says nothing about the server's health.
type staleConnError struct{ error }

func (e staleConnError) Unwrap() error { return e.error }

// record tells the circuit breaker how a request ended. A request whose client left, or whose connection was stale,
// does not count as a failure of the server.
func (s *server) record(ctx context.Context, err error) {
	if err == nil {
		s.breaker.succeed()
		return
	}
	_, stale := errors.AsType[staleConnError](err)
	if stale || errors.Is(ctx.Err(), context.Canceled) {
		s.breaker.abandon()
		return
	}
	if s.breaker.fail(time.Now()) {
		s.pool.opened.Add(ctx, 1, s.pool.attributes)
		s.pool.log.Warn("a server is left out", "upstream", s.pool.name, "server", s.addr, "error", err)
	}
}

// conn returns an idle connection, or a new one if none is idle.
func (s *server) conn(ctx context.Context, check connCheck) (_ *conn, reused bool, err error) {
	now := time.Now()
	oldest, fresh := now.Add(-idleTimeout), now.Add(-freshTime)
	for {
		c := s.popIdle()
		if c == nil {
			break
		}
		if c.since.Before(oldest) || (check == openConn || c.since.Before(fresh)) && !c.isOpen() {
			c.net.Close()
			continue
		}
		return c, true, nil
	}
	dialed, err := dial(ctx, s.addr, s.tls)
	if err != nil {
		return nil, false, err
	}
	c := &conn{server: s, net: dialed}
	c.r, c.w = bufio.NewReaderSize(dialed, bufferSize), bufio.NewWriterSize(dialed, bufferSize)
	return c, false, nil
}

// popIdle removes the most recently used idle connection. It returns nil if none is idle.
func (s *server) popIdle() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.idle) - 1
	if last < 0 {
		return nil
	}
	c := s.idle[last]
	s.idle = slices.Delete(s.idle, last, last+1)
	return c
}

// keep makes a connection idle, or closes it if enough are idle.
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

// closeIdle closes the connections that became idle before a time.
func (s *server) closeIdle(before time.Time) {
	s.mu.Lock()
	n := 0
	for n < len(s.idle) && s.idle[n].since.Before(before) {
		n++
	}
	old := slices.Clone(s.idle[:n])
	s.idle = slices.Delete(s.idle, 0, n)
	s.mu.Unlock()
	for _, c := range old {
		c.net.Close()
	}
}

// retire closes all idle connections, and keeps none from now on.
func (s *server) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.closeIdle(time.Now().Add(time.Hour))
}

// check requests /readyz. It returns nil if the server is ready, and its clock is not wrong.
func (s *server) check(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer func() {
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it did not answer within %v", checkTimeout)
		}
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, _, err := s.exchange(r, nil, openConn)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxCheckBody)); err != nil {
		return err
	}
	if err := s.pool.checkClock(s.addr, resp.Header.Get("Date")); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answered %d", resp.StatusCode)
	}
	return nil
}

// dial connects to addr, with TLS unless secure is nil.
func dial(ctx context.Context, addr string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if secure != nil {
		return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", addr)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

const (
	checkEvery   = time.Second
	checkTimeout = time.Second // time limit of a check, and of a DNS lookup
	maxCheckBody = 64 << 10    // maximum number of bytes that are read from the answer to a check
	resolveEvery = 5           // the names are looked up at every fifth check
)

// watch resolves the servers' names and checks the servers until ctx is done.
func (p *Pool) watch(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for turn := 0; ; turn++ {
		if turn%resolveEvery == 0 {
			p.resolve(ctx)
		}
		p.check(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// resolve looks up the host names and replaces the servers if addresses have
// changed.
func (p *Pool) resolve(ctx context.Context) {
	old := *p.servers.Load()
	var servers []*server
	for _, from := range p.sources {
		for _, host := range lookUp(ctx, from, old) {
			s := newServer(p, from, host)
			at := slices.IndexFunc(old, func(o *server) bool { return o.addr == s.addr && o.tls == s.tls })
			if at >= 0 {
				s = old[at]
			}
			if !slices.Contains(servers, s) {
				servers = append(servers, s)
			}
		}
	}
	if slices.Equal(servers, old) {
		return
	}
	p.servers.Store(&servers)
	for _, s := range old {
		if !slices.Contains(servers, s) {
			s.retire()
		}
	}
}

// lookUp returns the addresses of a source. If the lookup fails, it returns the source's addresses in old.
func lookUp(ctx context.Context, from source, old []*server) []string {
	if net.ParseIP(from.host) != nil {
		return []string{from.host}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, family := range []string{"ip4", "ip6"} { // one family is enough: both lead to the same servers
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, family, from.host)
		if err != nil || len(addrs) == 0 {
			continue
		}
		hosts := make([]string, len(addrs))
		for i, addr := range addrs {
			hosts[i] = addr.Unmap().String()
		}
		slices.Sort(hosts)
		return hosts
	}
	var hosts []string
	for _, s := range old {
		if s.from == from {
			host, _, _ := net.SplitHostPort(s.addr) // cannot fail: the address was made by JoinHostPort
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// check requests /readyz from all servers at the same time.
func (p *Pool) check(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range *p.servers.Load() {
		all.Go(func() {
			s.closeIdle(time.Now().Add(-idleTimeout))
			err := s.check(ctx)
			if ctx.Err() != nil {
				return
			}
			p.noteReady(s, err)
		})
	}
	all.Wait()
}

// startTime is how long a server may take to start before the log has it.
const startTime = 10 * time.Second

// noteReady stores the result of a check, and logs a change.
func (p *Pool) noteReady(s *server, err error) {
	if err == nil {
		s.breaker.succeed()
	} else {
		// The server may be about to stop. It could then close an idle connection
		// at the moment when a request is sent on the connection.
		s.closeIdle(time.Now())
	}
	s.ready.Store(err == nil)
	told := s.told
	s.heard, s.told = s.heard || err == nil, err != nil && (told || s.heard || time.Since(s.made) > startTime)
	switch {
	case s.told && !told:
		p.log.Warn("a server is not ready", "upstream", p.name, "server", s.addr, "error", err)
	case told && !s.told:
		p.log.Info("a server is ready again", "upstream", p.name, "server", s.addr)
	}
}
