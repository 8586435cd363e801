package apikey

import (
	"context"
	"log/slog"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/sleep"
)

// Watcher returns the keys that have changed since an earlier answer. It answers as soon as a key changes, or after
// the given time (wait).
type Watcher interface {
	WatchKeys(ctx context.Context, since string, wait time.Duration) (authapi.WatchKeysResponse, error)
}

const (
	watchWait    = 250 * time.Millisecond // how long a call waits for a change; each answer confirms the cache
	watchTimeout = 500 * time.Millisecond // timeout of a call
	watchPause   = 100 * time.Millisecond // pause after a failed call
	watchLeast   = 10 * time.Millisecond  // least time between two calls
	watchLost    = 3 * time.Second        // time without an answer after which a warning is logged
)

// Watch passes all changes on to the cache until ctx is done.
func (c *Cache) Watch(ctx context.Context, from Watcher, log *slog.Logger) {
	since, answered, lost := "", time.Now(), false
	for ctx.Err() == nil {
		asked, began := c.now(), time.Now()
		answer, err := watch(ctx, from, since)
		if err != nil {
			if !lost && ctx.Err() == nil && time.Since(answered) > watchLost {
				lost = true
				log.Warn("cannot watch changes of API keys; every key is verified again within a second", "error", err)
			}
			sleep.For(ctx, watchPause)
			continue
		}
		if lost {
			lost = false
			log.Info("changes of API keys are watched again")
		}
		answered = time.Now()
		changed := answer.At != since
		if changed {
			c.Forget(answer)
			since = answer.At
		}
		c.Confirm(asked)    // the answer was made after the time `asked`, so it has all changes up to that time
		least := watchLeast // the watcher may have another state in each answer
		if !changed {
			least = watchPause // perhaps the watcher does not wait
		}
		sleep.For(ctx, least-answered.Sub(began))
	}
}

func watch(ctx context.Context, from Watcher, since string) (authapi.WatchKeysResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return from.WatchKeys(ctx, since, watchWait)
}
