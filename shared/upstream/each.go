package upstream

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	lookEvery = time.Second     // between two looks at which servers there are
	eachPause = time.Second / 2 // between two connections of Each to a server
)

// Each calls follow for each server, with a connection of its own and the server's host and
// port, and again some time after follow has returned. It closes the connection then. The
// context of follow ends when the server leaves the pool. Each returns once ctx is done and
// each follow has returned.
func (p *Pool) Each(ctx context.Context, follow func(ctx context.Context, conn net.Conn, host string)) {
	var all sync.WaitGroup
	defer all.Wait()
	followed := map[*server]context.CancelFunc{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		now := map[*server]bool{}
		for _, s := range *p.servers.Load() {
			now[s] = true
			if followed[s] == nil {
				following, stop := context.WithCancel(ctx)
				followed[s] = stop
				all.Go(func() { s.each(following, follow) })
			}
		}
		for s, stop := range followed {
			if !now[s] {
				stop()
				delete(followed, s)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	for _, stop := range followed {
		stop()
	}
}

// each calls follow again and again.
func (s *server) each(ctx context.Context, follow func(ctx context.Context, conn net.Conn, host string)) {
	for ctx.Err() == nil {
		if conn, err := dial(ctx, s.addr, s.tls); err == nil {
			follow(ctx, conn, s.addr)
			_ = conn.Close() // it may be closed already
		}
		select {
		case <-time.After(eachPause):
		case <-ctx.Done():
		}
	}
}
