package apikey

import (
	"context"
	"log/slog"
	"time"

	"asset-registry/shared/authapi"
)

// Watcher tells which keys have changed since an answer before, as soon as one
// has, or after a time of waiting.
type Watcher interface {
	WatchKeys(ctx context.Context, since string, wait time.Duration) (authapi.WatchKeysResponse, error)
}

const (
	watchWait    = 250 * time.Millisecond // of a question: an answer confirms what is remembered
	watchTimeout = 500 * time.Millisecond // of a question that is not answered
	watchPause   = 100 * time.Millisecond // after one that failed
	watchLost    = 3 * time.Second        // without an answer, until the log is told
)

// Watch tells the cache what changes until ctx is done.
func (c *Cache) Watch(ctx context.Context, from Watcher, log *slog.Logger) {
	since, answered, lost := "", time.Now(), false
	for ctx.Err() == nil {
		asked, began := c.now(), time.Now()
		answer, err := watch(ctx, from, since)
		if err != nil {
			if !lost && ctx.Err() == nil && time.Since(answered) > watchLost {
				lost = true
				log.Warn("changes of API keys are not told; keys are verified all the time", "error", err)
			}
			pause(ctx)
			continue
		}
		if lost {
			lost = false
			log.Info("changes of API keys are told again")
		}
		answered = time.Now()
		changed := answer.At != since
		if changed {
			c.Forget(answer)
			since = answer.At
		}
		c.Confirm(asked) // the answer is true as of some time after that
		if !changed && answered.Sub(began) < watchPause {
			pause(ctx) // it does not wait as it was asked to
		}
	}
}

func pause(ctx context.Context) {
	select {
	case <-time.After(watchPause):
	case <-ctx.Done():
	}
}

func watch(ctx context.Context, from Watcher, since string) (authapi.WatchKeysResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return from.WatchKeys(ctx, since, watchWait)
}
