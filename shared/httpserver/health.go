package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// readiness logs when a service stops being ready, and when it is ready again.
type readiness struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time // when the service stopped being ready; zero while it is ready
	times int       // number of failed checks since then
}

// note records the result of a check. It ignores an error if the caller has left, because the caller's leaving may
// have caused the error.
func (r *readiness) note(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch ready := r.since.IsZero(); {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
	case err != nil:
		if r.times++; ready {
			r.since = time.Now()
			r.log.Warn("not ready", "error", err)
		}
	case !ready:
		r.log.Info("ready again", "times", r.times, "seconds", time.Since(r.since).Seconds())
		r.since, r.times = time.Time{}, 0
	}
}
