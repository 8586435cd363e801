package bulk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/sleep"
)

// Pauses between tries while the registry does not answer.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
	patience     = 2 * time.Minute // the load gives up after this time without any answer
)

// toldWait is the shortest wait that is reported to the user.
const toldWait = 5 * time.Second

// calls makes the calls of all rows. It repeats a call while the registry answers 429 (Too Many Requests). If the
// registry does not answer, it repeats the call for some time. If the registry tells one row to wait, all rows wait.
type calls struct {
	waiting func(string)

	mu       sync.Mutex
	until    time.Time // no call begins before this time
	answered time.Time // time of the last answer
	told     time.Time // end of the wait that was last reported to the user
}

func newCalls(waiting func(string)) *calls { return &calls{waiting: waiting, answered: time.Now()} }

// The method `do` repeats a call until it has a final answer. It may run the given function several times, so
// repeated runs must do no harm.
func (c *calls) do(ctx context.Context, call func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		c.mu.Lock()
		wait := time.Until(c.until)
		c.mu.Unlock()
		if !sleep.For(ctx, wait) && ctx.Err() != nil {
			return ctx.Err()
		}
		err := call()
		if !c.again(ctx, err, pause) {
			return err
		}
	}
}

// The method `again` reports whether a call that ended with err must be made again. If no answer came, it first waits.
func (c *calls) again(ctx context.Context, err error, pause time.Duration) bool {
	refusal, _ := errors.AsType[*client.Error](err)
	limited := refusal != nil && refusal.Status == http.StatusTooManyRequests
	c.mu.Lock()
	if limited {
		c.limit(refusal.RetryAfter)
	}
	if !isAway(err) {
		c.answered = time.Now()
	}
	silent := time.Since(c.answered)
	c.mu.Unlock()
	if limited || !isAway(err) || silent > patience || ctx.Err() != nil {
		return limited && ctx.Err() == nil
	}
	if refusal != nil {
		pause = max(pause, refusal.RetryAfter)
	}
	return sleep.For(ctx, pause+rand.N(pause/4))
}

// limit makes all calls wait: no call begins before the given duration has passed. The caller holds
// the lock.
func (c *calls) limit(wait time.Duration) {
	wait = max(wait, time.Second)
	until := time.Now().Add(wait)
	if until.After(c.until) {
		c.until = until
	}
	if wait >= toldWait && time.Now().After(c.told) {
		c.told = c.until
		c.waiting(fmt.Sprintf("The registry limits requests: the import goes on in %v.", wait.Round(time.Second)))
	}
}

// isAway reports whether a call got no answer from the registry. Such a call may have taken effect.
func isAway(err error) bool {
	if err == nil {
		return false
	}
	if _, local := errors.AsType[*fs.PathError](err); local {
		return false
	}
	away := []int{0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	return slices.Contains(away, client.StatusOf(err))
}
