package authsvc

import (
	"context"
	"log/slog"
	"time"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/sleep"
)

// The intervals between sweeps of transfers.
const (
	sweepEvery = 6 * time.Hour
	sweepAgain = time.Minute // after a sweep that failed
)

// sweep removes expired transfers at once and then regularly, until stop.
func sweep(ctx context.Context, tokens *token.Service, log *slog.Logger, now func() time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			wait := sweepEvery
			if err := tokens.Sweep(ctx, now()); err != nil && ctx.Err() == nil {
				log.Warn("remove expired transfers", "error", err, "retry_in", sweepAgain.String())
				wait = sweepAgain
			}
			if !sleep.For(ctx, wait) {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
