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
	// sweepFirst is the time from the start to the first sweep. A clock that was wrong at the start is set by then. It is
	// less than a day, so that a machine that starts each night sweeps too.
	sweepFirst = 20 * time.Hour
	sweepEvery = 6 * time.Hour
	sweepAgain = time.Minute // time from a failed sweep to the next one
	clockError = time.Hour
)

// clock notices whether somebody sets the time of day after the moment in the field `begun`.
type clock struct {
	begun time.Time // has a reading of the monotonic clock
	shown time.Time
	now   func() time.Time
}

func newClock(now func() time.Time) clock { return clock{time.Now(), now().Round(0), now} }

// leaps reports whether somebody has changed the clock by more than clockError since the moment in the field `begun`.
// The time that the clock shows may then be wrong.
func (c clock) leaps() bool {
	return (c.now().Round(0).Sub(c.shown) - time.Since(c.begun)).Abs() > clockError
}

// sweep removes expired transfers regularly, until the function `stop` is called. It removes nothing while the
// clock may be wrong: soon after the start, when the clock is perhaps not set yet, and after somebody has changed the
// clock by more than an hour.
func sweep(ctx context.Context, tokens *token.Service, log *slog.Logger, now func() time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		steady := newClock(now)
		for wait := sweepFirst; sleep.For(ctx, wait); {
			wait = sweepEvery
			if steady.leaps() {
				log.Warn("no expired transfers are removed: the clock was set by more than an hour; is it right?")
				steady = newClock(now)
				continue
			}
			if err := tokens.Sweep(ctx, now()); err != nil && ctx.Err() == nil {
				log.Warn("remove expired transfers", "error", err, "retry_in", sweepAgain.String())
				wait = sweepAgain
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
