package authsvc

import (
	"context"
	"log/slog"
	"time"

	"asset-registry/authsvc/internal/token"
)

// How long to wait until transfers are swept again, after a sweep and after one
// that failed.
const (
	sweepEvery = 6 * time.Hour
	sweepAgain = time.Minute
)

// sweep sweeps transfers at once and then from time to time, until stop.
func sweep(ctx context.Context, tokens *token.Service, log *slog.Logger, now func() time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			wait := sweepEvery
			if err := tokens.Sweep(ctx, now()); err != nil && ctx.Err() == nil {
				log.Warn("expired transfers are not removed; a sweep follows in a minute", "error", err)
				wait = sweepAgain
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
