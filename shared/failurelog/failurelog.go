// Package failurelog logs a failure that repeats, such as a dependency that is
// away, as a state: when it begins, with its cause; how often it has come, from
// time to time; and when it is over.
package failurelog

import (
	"log/slog"
	"sync"
	"time"
)

const (
	over      = 10 * time.Second // without a failure, until the state is over
	tellEvery = time.Minute      // while failures go on, at least
)

// Log tells a log of failures of one kind. It is safe for concurrent use. A
// timer runs from the first failure until the state is over.
type Log struct {
	log  *slog.Logger
	what string

	mu          sync.Mutex
	times       int // failures since began; 0: the state is over
	began, told time.Time
	last        time.Time // failure
	cause       error     // of the last failure
}

// New returns a Log whose lines begin with what, "requests are refused".
func New(log *slog.Logger, what string) *Log { return &Log{log: log, what: what} }

// Failed counts a failure, and logs it if it is the first one.
func (l *Log) Failed(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times++
	l.last, l.cause = time.Now(), cause
	if l.times > 1 {
		return
	}
	l.began, l.told = l.last, l.last
	l.log.Warn(l.what, "error", cause)
	time.AfterFunc(over, l.look)
}

// look tells what has come of the state since it was told last.
func (l *Log) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if quiet := now.Sub(l.last); quiet < over {
		if now.Sub(l.told) >= tellEvery {
			l.told = now
			l.log.Warn(l.what+": it goes on", "times", l.times, "seconds", now.Sub(l.began).Seconds(), "error", l.cause)
		}
		time.AfterFunc(over-quiet, l.look)
		return
	}
	l.log.Info(l.what+": no more", "times", l.times, "seconds", l.last.Sub(l.began).Seconds())
	l.times = 0
}
