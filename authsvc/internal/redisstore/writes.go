package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/sleep"
)

const (
	probeKey   = "registry:probe" // written by askForWrites; nobody reads it
	probeEvery = 10 * time.Second
)

// WatchWrites asks the server every ten seconds whether it takes writes, until the function `stop` is called. No
// request asks. Warnings and the metric registry.store.refusing tell the last answer.
func (s *Store) WatchWrites(ctx context.Context, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		refused := failurelog.NewState(log, "Redis of the tokens refuses writes")
		defer refused.Close()
		for again := true; again; again = sleep.For(ctx, probeEvery) {
			if err := s.askForWrites(ctx); err != nil {
				refused.Failed(err)
			} else {
				refused.Worked()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// askForWrites writes to the server, and returns its refusal. A server that does not answer is none: Ready tells of it.
func (s *Store) askForWrites(ctx context.Context) error {
	var err error
	if refusal, ok := errors.AsType[redis.Error](s.watcher.Set(ctx, probeKey, "", time.Minute).Err()); ok {
		err = refusal // without the words for clients
	}
	s.refusal.Store(&err)
	return err
}

// refuses returns the server's last refusal of a write, or nil.
func (s *Store) refuses() error {
	if err := s.refusal.Load(); err != nil {
		return *err
	}
	return nil
}
