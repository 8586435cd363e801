package webhook

import (
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	challengedFor = time.Hour        // for the bounds below
	brokerMost    = 16 * MaxOfBroker // challenges of one broker
	hostMost      = MaxEndpoints     // challenges to one host
)

// challenged knows when challenges were sent: to each endpoint, also if its address has changed
// since, for each broker, and to each host. So nobody makes the registry send many to a stranger.
type challenged struct {
	mu   sync.Mutex
	sent map[string]*tally
}

// tally is a number of challenges since a time.
type tally struct {
	since time.Time
	sent  int
}

// bound is how many challenges a name has within a time.
type bound struct {
	name   string
	most   int
	within time.Duration
}

func newChallenged() *challenged { return &challenged{sent: map[string]*tally{}} }

// boundsOf returns the bounds of challenges to an endpoint.
func boundsOf(e Endpoint) []bound {
	host := e.URL // one that cannot be parsed is never sent to
	if u, err := url.Parse(e.URL); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	return []bound{
		{"endpoint " + e.ID, 1, challenges},
		{payer(e), brokerMost, challengedFor},
		{"host " + host, hostMost, challengedFor},
	}
}

// take counts a challenge and returns 0, or counts nothing and returns the time to wait.
func (c *challenged) take(e Endpoint) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, bounds := time.Now(), boundsOf(e)
	for _, b := range bounds {
		w := c.sent[b.name]
		if w == nil {
			continue
		}
		if left := b.within - now.Sub(w.since); left <= 0 {
			delete(c.sent, b.name)
		} else if w.sent >= b.most {
			wait = max(wait, left)
		}
	}
	if wait > 0 {
		return wait
	}
	for _, b := range bounds {
		if c.sent[b.name] == nil {
			c.sent[b.name] = &tally{since: now}
		}
		c.sent[b.name].sent++
	}
	c.forget(now)
	return 0
}

// forget removes what counts no more, a few names a call, so that the map stays small.
func (c *challenged) forget(now time.Time) {
	looked := 0
	for name, w := range c.sent {
		if now.Sub(w.since) > challengedFor {
			delete(c.sent, name)
		}
		if looked++; looked == 8 {
			return
		}
	}
}
