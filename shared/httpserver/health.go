package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// readiness logs when a service stops being ready, and when it is again.
type readiness struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time // it is not ready; zero: it is
	times int       // it has said so since then
}

// tell notes what was found out for a caller with a context. One that has left
// learns nothing of the service.
func (r *readiness) tell(ctx context.Context, err error) {
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

// healthTimeout bounds a question for health.
const healthTimeout = 2 * time.Second

// Health asks a service for its readiness, at the whole address of that, and
// returns nil if it is ready. It is what an image without a shell is checked with.
func Health(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it is not ready: %d %s", resp.StatusCode, text)
	}
	return nil
}
