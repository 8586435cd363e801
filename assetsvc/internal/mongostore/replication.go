package mongostore

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// member is how far a server of a replica set was when it was last heard of. The
// driver hears of each every ten seconds, and no privilege is needed for that.
type member struct {
	wrote time.Time // newest write that it has
	heard time.Time // when it said so
}

// beaten takes what a server says of itself.
func (c *connections) beaten(e *event.ServerHeartbeatSucceededEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrote := e.Reply.LastWriteTime; !wrote.IsZero() {
		c.members[e.Reply.Addr.String()] = member{wrote, time.Now()}
	}
}

// keepMembers forgets those that are no servers of the store any more. One that
// is down still is one.
func (c *connections) keepMembers(servers []event.ServerDescription) {
	kept := map[string]member{}
	for _, s := range servers {
		if m, known := c.members[s.Addr.String()]; known {
			kept[s.Addr.String()] = m
		}
	}
	c.members = kept
}

// silentAfter is how long nothing may be heard of a server that is up.
const silentAfter = 30 * time.Second

// lags returns how far each server is behind the one that takes writes. A server
// that is silent falls behind as time goes by. While none takes writes, nothing
// is told.
func (c *connections) lags(now time.Time) map[string]time.Duration {
	if c.primary == "" {
		return nil
	}
	behind := map[string]time.Duration{c.primary: 0}
	primary, known := c.members[c.primary]
	if !known { // it is no replica set
		return behind
	}
	for server, m := range c.members {
		if server == c.primary {
			continue
		}
		heard := m.heard
		if now.Sub(heard) > silentAfter {
			heard = now
		}
		// Each is compared with its own time of hearing: they are heard at different times.
		behind[server] = max(0, heard.Sub(m.wrote)-primary.heard.Sub(primary.wrote))
	}
	return behind
}
