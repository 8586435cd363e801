package mongostore

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// member is the replication state of one server of the replica set. The driver asks each server for this state every
// ten seconds, and needs no privilege for it.
type member struct {
	wrote time.Time // time of the newest write that the server has
	heard time.Time // when the server reported this time
}

// heartbeat records the state that a server reports.
func (c *connections) heartbeat(e *event.ServerHeartbeatSucceededEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrote := e.Reply.LastWriteTime; !wrote.IsZero() {
		c.members[e.Reply.Addr.String()] = member{wrote, time.Now()}
	}
}

// keepMembers forgets servers that have left the replica set. A server that is down still belongs to it.
func (c *connections) keepMembers(servers []event.ServerDescription) {
	kept := map[string]member{}
	for _, s := range servers {
		if m, known := c.members[s.Addr.String()]; known {
			kept[s.Addr.String()] = m
		}
	}
	c.members = kept
}

// silentAfter is the time after which a server that has not reported counts as silent.
const silentAfter = 30 * time.Second

// lags returns how far each server is behind the primary. For a server that has been silent longer than silentAfter,
// the lag grows with time. Without a primary, the result is nil.
func (c *connections) lags(now time.Time) map[string]time.Duration {
	if c.primary == "" {
		return nil
	}
	behind := map[string]time.Duration{c.primary: 0}
	primary, known := c.members[c.primary]
	if !known { // the server is not in a replica set
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
		// Servers report at different times. So each server's newest write is compared with the time at which that
		// server reported it.
		behind[server] = max(0, heard.Sub(m.wrote)-primary.heard.Sub(primary.wrote))
	}
	return behind
}
