package webhook

import (
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	challengedFor = time.Hour        // the bounds below limit the number of challenges in this time
	brokerMost    = 16 * MaxOfBroker // maximum number of challenges of one broker
	hostMost      = MaxEndpoints     // maximum number of challenges to one host
)

// challenged knows when challenges were sent: to each endpoint, for each broker, and to each host. An endpoint
// keeps its count when its address changes. So nobody can make the registry send many challenges to a
// stranger's server.
type challenged struct {
	mu   sync.Mutex
	sent map[string]*tally
}

// tally counts the challenges that were sent since a certain time.
type tally struct {
	since time.Time
	sent  int
}

// bound is the largest number of challenges within a period, for an endpoint, a broker or a host.
type bound struct {
	name   string
	most   int
	within time.Duration
}

func newChallenged() *challenged { return &challenged{sent: map[string]*tally{}} }

// boundsOf returns the bounds that apply to a challenge to an endpoint.
func boundsOf(e Endpoint) []bound {
	host := e.URL // nothing is ever sent to an address that cannot be parsed
	if u, err := url.Parse(e.URL); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	return []bound{
		{"endpoint " + e.ID, 1, challenges},
		{payer(e), brokerMost, challengedFor},
		{"host " + host, hostMost, challengedFor},
	}
}

// take counts a challenge and returns 0 if a challenge may be sent now. Otherwise it returns the time to wait,
// and does not count the challenge.
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

// forget removes old counts. Each call looks at a few names only, which is enough to keep the map small.
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
