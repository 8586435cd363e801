package failurelog

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"
)

const (
	maxCauses = 1000 // causes that a Repeats tells apart
	others    = "others"
)

// Cause identifies lines that are told together.
type Cause struct {
	Level  slog.Level
	What   string // the beginning of the lines' message
	Of     string // the route that failed, or what else a line is about; "" for all
	Status int    // status of the answers; 0 for lines that are not about answers
	Client string // address of the client; "" for any client
}

// Repeats limits lines that outsiders can cause at any rate. Of each cause, the caller logs the first line. Repeats
// counts the lines that follow, and logs their number once a minute. It is safe for concurrent use. It keeps at most
// 1,000 causes, and counts the clients beyond them together. A timer runs while there are causes.
type Repeats struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[Cause]int // lines that were not logged in this minute
}

// NewRepeats returns a Repeats that logs the numbers.
func NewRepeats(log *slog.Logger) *Repeats { return &Repeats{log: log, counts: map[Cause]int{}} }

// IsFirst reports whether the caller must log its line. Otherwise the line is counted. Addresses of one IPv6 network
// of 64 bits are one client.
func (r *Repeats) IsFirst(c Cause) bool {
	if addr, err := netip.ParseAddr(c.Client); err == nil && addr.Is6() && !addr.Is4In6() {
		network, _ := addr.Prefix(64) // fails only for a wrong number of bits
		c.Client = network.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n, known := r.counts[c]
	if !known && len(r.counts) >= maxCauses {
		c.Client, c.Of = others, ""
		n, known = r.counts[c]
	}
	if known {
		r.counts[c] = n + 1
		return false
	}
	if len(r.counts) == 0 {
		time.AfterFunc(tellEvery, r.tell)
	}
	r.counts[c] = 0
	return true
}

// tell logs the numbers of the last minute, and forgets the causes that were quiet.
func (r *Repeats) tell() {
	r.mu.Lock()
	counts := maps.Clone(r.counts)
	for c, n := range counts {
		if n == 0 {
			delete(r.counts, c)
			continue
		}
		r.counts[c] = 0
	}
	if len(r.counts) > 0 {
		time.AfterFunc(tellEvery, r.tell)
	}
	r.mu.Unlock()
	for c, n := range counts {
		if n == 0 {
			continue
		}
		r.log.Log(context.Background(), c.Level, c.What+": as before, in the last minute",
			"times", n, "status", c.Status, "client", c.Client, "of", c.Of)
	}
}
