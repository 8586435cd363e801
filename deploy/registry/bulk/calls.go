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

// The pauses while the registry does not answer.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
	patience     = 2 * time.Minute // without any answer, to all rows
)

// toldWait is the shortest wait that a person is told about.
const toldWait = 5 * time.Second

// calls makes the calls of all rows, and repeats them: for ever while the registry limits them, and
// for a while if it does not answer. A wait that one row is told of holds for all.
type calls struct {
	waiting func(string)

	mu       sync.Mutex
	until    time.Time // no call begins before
	answered time.Time // the last answer
	told     time.Time // the wait that a person was told about ends
}

func newCalls(waiting func(string)) *calls { return &calls{waiting: waiting, answered: time.Now()} }

// do makes a call until its answer lasts. A call must do no harm if it is repeated.
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

// again tells whether a call with this end is made again, after it has waited if no answer came.
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

// limit lets no call begin before a time from now. The caller has the lock.
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

// isAway tells whether a call has no answer of the registry, so it may have been done or not.
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
