package httpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

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
