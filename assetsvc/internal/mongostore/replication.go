package mongostore

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// member is the replication state of a server of the replica set. The driver
// learns it from each server every ten seconds, without any privilege.
type member struct {
	wrote time.Time // newest write that the server has
	heard time.Time // when the server reported it
}

// heartbeat records the state that a server reports.
func (c *connections) heartbeat(e *event.ServerHeartbeatSucceededEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrote := e.Reply.LastWriteTime; !wrote.IsZero() {
		c.members[e.Reply.Addr.String()] = member{wrote, time.Now()}
	}
}

// keepMembers forgets servers that have left the replica set. A server that is
// down has not left it.
func (c *connections) keepMembers(servers []event.ServerDescription) {
	kept := map[string]member{}
	for _, s := range servers {
		if m, known := c.members[s.Addr.String()]; known {
			kept[s.Addr.String()] = m
		}
	}
	c.members = kept
}

// silentAfter is the longest time between two reports of a server that is up.
const silentAfter = 30 * time.Second

// lags returns how far each server is behind the primary. The lag of a silent
// server grows with time. Without a primary it returns nil.
func (c *connections) lags(now time.Time) map[string]time.Duration {
	if c.primary == "" {
		return nil
	}
	behind := map[string]time.Duration{c.primary: 0}
	primary, known := c.members[c.primary]
	if !known { // not a replica set
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
		// Servers report at different times, so each age is taken at its own report.
		behind[server] = max(0, heard.Sub(m.wrote)-primary.heard.Sub(primary.wrote))
	}
	return behind
}
