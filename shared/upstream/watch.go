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
	checkTimeout = time.Second // of a question for readiness
	maxCheck     = 64 << 10    // bytes of its answer that are read
	resolveEvery = 5           // checks
)

// watch keeps the pool's idea of its servers true until ctx is done.
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

// resolve looks for the servers that stand behind the addresses' names. A name
// that cannot be looked up keeps those that it had.
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

func lookUp(ctx context.Context, from source, old []*server) []string {
	if net.ParseIP(from.host) != nil {
		return []string{from.host}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, family := range []string{"ip4", "ip6"} { // one of the two: they lead to the same servers
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
			host, _, _ := net.SplitHostPort(s.addr) // as JoinHostPort has made it
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// check asks all servers whether they are ready.
func (p *Pool) check(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range *p.servers.Load() {
		all.Go(func() {
			s.drop(time.Now().Add(-idleTimeout))
			err := s.check(ctx)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				s.breaker.succeed() // so failures count that come faster than checks
			}
			if err != nil { // who is about to end closes its connections: none must be in use then
				s.drop(time.Now())
			}
			if was := s.ready.Swap(err == nil); was && err != nil {
				p.log.Warn("a server is not ready", "service", p.name, "server", s.addr, "error", err)
			} else if !was && err == nil {
				p.log.Info("a server is ready again", "service", p.name, "server", s.addr)
			}
		})
	}
	all.Wait()
}
