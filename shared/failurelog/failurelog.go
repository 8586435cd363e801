// Package failurelog logs a failure that repeats, such as a store that is down.
// It logs the first failure with its cause, the number of failures every minute,
// and the end.
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
	over      = 10 * time.Second // after this time without a failure, the failures count as ended
	tellEvery = time.Minute      // least time between two lines while failures go on
)

// Log logs failures of one kind. It is safe for concurrent use. A timer runs while the failures last. Close stops the
// timer earlier.
type Log struct {
	log  *slog.Logger
	what string

	mu     sync.Mutex
	times  int       // failures since the time in the field `began`; 0 after the end
	began  time.Time // time of the first failure
	told   time.Time // time of the last line
	last   time.Time // time of the last failure
	lastBy error     // the cause of the last failure
	awaits bool      // the failures end only after a call of Worked
	worked bool      // something has worked since the last failure
	timer  *time.Timer
	closed bool
}

// New returns a Log. All its lines begin with the argument `what`, for example "requests are refused".
func New(log *slog.Logger, what string) *Log { return &Log{log: log, what: what} }

// NewState returns a Log whose failures end only after a call of Worked. It is for failures that may come rarely, such
// as failures of requests. A long time without a failure does not mean that they have ended.
func NewState(log *slog.Logger, what string) *Log { return &Log{log: log, what: what, awaits: true} }

// Worked notes that the operation whose failures are logged has succeeded.
func (l *Log) Worked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worked = true
}

// Failed counts a failure, and logs the first one.
func (l *Log) Failed(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.times++
	l.last, l.lastBy, l.worked = time.Now(), cause, false
	if l.times > 1 {
		return
	}
	l.began, l.told = l.last, l.last
	l.log.Warn(l.what, "error", cause)
	l.timer = time.AfterFunc(over, l.check)
}

// Tell notes the result of an operation: Failed with an error, Worked with nil.
func (l *Log) Tell(err error) {
	if err != nil {
		l.Failed(err)
		return
	}
	l.Worked()
}

// Close stops the timer. From then on nothing is logged.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// check logs the end of the failures if they have ended. Otherwise it logs that the
// failures go on, if a line is due, and sets the next timer.
func (l *Log) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	now := time.Now()
	if quiet := now.Sub(l.last); quiet < over || l.awaits && !l.worked {
		if quiet < over && now.Sub(l.told) >= tellEvery {
			l.told = now
			l.log.Warn(l.what+": it goes on",
				"times", l.times, "seconds", now.Sub(l.began).Seconds(), "error", l.lastBy)
		}
		next := over
		if quiet < over {
			next -= quiet
		}
		l.timer = time.AfterFunc(next, l.check)
		return
	}
	l.log.Info(l.what+": no more", "times", l.times, "seconds", l.last.Sub(l.began).Seconds())
	l.times = 0
}

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
	Client string // id of the client's key, or else its address; "" for any client
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
