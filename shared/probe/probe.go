// Package probe asks whether a service is ready.
package probe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"asset-registry/shared/httpclient"
)

const timeout = 2 * time.Second

// Ready requests url, the address of a service's /readyz. It returns nil if the service
// is ready. Images without a shell use it for their health checks.
func Ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := httpclient.New(nil).Do(r)
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
