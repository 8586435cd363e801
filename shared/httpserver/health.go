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

// readiness logs when a service stops being ready, and when it is ready again.
type readiness struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time // when it stopped being ready; zero while it is ready
	times int       // requests for readiness that failed since then
}

// note records the result of a check. It ignores an error if the caller left,
// since that may be the error's cause.
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

const healthTimeout = 2 * time.Second

// Health requests url, the address of a service's /readyz. It returns nil if the
// service is ready. Images without a shell use it for their health checks.
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
		return fmt.Errorf("not ready: %d %s", resp.StatusCode, text)
	}
	return nil
}
