// Package failurelog logs a failure that repeats, such as a store that is down.
// It logs the first failure with its cause, the number of failures every minute,
// and the end.
package failurelog

import (
	"log/slog"
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
