package registryctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthTimeout is the longest time for the request of showHealth.
const healthTimeout = 2 * time.Second

// showHealth is for health checks of images without a shell.
type showHealth struct {
	Address string `arg:"" name:"url" help:"Address of /readyz, such as http://127.0.0.1:8090/readyz."`
}

// Run fails unless the witness or the service is ready.
func (c showHealth) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	_ = answer.Body.Close() // it was only read
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %d %s", answer.StatusCode, text)
	}
	return nil
}
