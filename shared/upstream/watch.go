package upstream

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

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

// noteReady stores the result of a check, and logs a change.
func (p *Pool) noteReady(s *server, err error) {
	if err == nil {
		s.breaker.succeed()
	} else {
		// The server may be about to stop. It could then close an idle connection
		// at the moment when a request is sent on the connection.
		s.closeIdle(time.Now())
	}
	was := s.ready.Swap(err == nil)
	switch {
	case was && err != nil:
		p.log.Warn("a server is not ready", "service", p.name, "server", s.addr, "error", err)
	case !was && err == nil:
		p.log.Info("a server is ready again", "service", p.name, "server", s.addr)
	}
}
