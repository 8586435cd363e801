package upstream

import (
	"context"
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
	maxIdle     = 256                    // maximum number of idle connections to one server
	bufferSize  = 8 << 10                // bytes of a buffer; a connection has two buffers; a typical asset fits into one
)

// server is one server of a service.
type server struct {
	pool    *Pool
	addr    string // host and port
	from    source
	made    time.Time
	heard   bool // a check has succeeded; only the watch uses it
	told    bool // the log has that the server is not ready; only the watch uses it
	ready   atomic.Bool
	busy    atomic.Int64 // requests under way
	breaker breaker

	transport *http.Transport
	once      *http.Transport // has a new connection for each request
}

// newServer returns a server that counts as ready until a check fails.
func newServer(p *Pool, from source, host string) *server {
	s := &server{pool: p, addr: net.JoinHostPort(host, from.port), from: from, made: time.Now()}
	s.ready.Store(true)
	s.transport = &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSClientConfig: from.tls,
		TLSHandshakeTimeout: dialTimeout, DisableCompression: true,
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout, ReadBufferSize: bufferSize, WriteBufferSize: bufferSize,
	}
	s.once = s.transport.Clone()
	s.once.DisableKeepAlives = true
	return s
}

func (s *server) isBetter(than *server) bool {
	if ready := s.ready.Load(); ready != than.ready.Load() {
		return ready
	}
	return s.busy.Load() < than.busy.Load()
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
	resp, _, err := s.exchange(r, nil)
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
			at := slices.IndexFunc(old, func(o *server) bool { return o.addr == s.addr && o.from.tls == s.from.tls })
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
			s.transport.CloseIdleConnections()
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
		s.transport.CloseIdleConnections()
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
