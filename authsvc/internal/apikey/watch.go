package apikey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

const (
	watchTick   = 100 * time.Millisecond // interval between reads of the log while a caller waits
	watchMargin = 2 * watchTick          // a request is answered this long before its deadline
	maxChanges  = 500                    // an answer about more changes says "all"
	// maxNames is the maximum number of bytes of an answer. Gateways do not read more, so a Watch answers "all" instead
	// of a longer answer.
	maxNames = 32 << 10
)

// Watch reports to gateways which keys have changed. It reads the changes from the audit log, which is in the
// store that all auth services share. It is safe for concurrent use.
type Watch struct{ log Log }

// NewWatch returns a watch of an audit log.
func NewWatch(log Log) *Watch { return &Watch{log} }

// Await waits for changes since a previous answer, and returns them. The argument `wait` is the longest time to
// wait; Await also stops shortly before ctx ends. If there is no change until then, it returns none. The answer
// was correct at some moment after the call began.
func (w *Watch) Await(ctx context.Context, since string, wait time.Duration) (authapi.WatchKeysResponse, error) {
	asked := time.Now()
	// A wait that ends without a change is not a failure, so it must end before ctx.
	if end, within := ctx.Deadline(); within {
		wait = min(wait, time.Until(end)-watchMargin)
	}
	head, err := w.log.Head(ctx)
	if err != nil {
		return authapi.WatchKeysResponse{}, err
	}
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for head.String() == since {
		if time.Since(asked) >= wait {
			return authapi.WatchKeysResponse{At: since}, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if err = ctx.Err(); err == nil {
			head, err = w.log.Head(ctx)
		}
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded): // the process stood still, and nothing has failed
			return authapi.WatchKeysResponse{At: since}, nil
		case err != nil:
			return authapi.WatchKeysResponse{}, err
		}
	}
	return w.changes(ctx, since, head)
}

func (w *Watch) changes(ctx context.Context, since string, head adminapi.Head) (authapi.WatchKeysResponse, error) {
	all := authapi.WatchKeysResponse{At: head.String(), All: true}
	from, err := adminapi.ParseHead(since)
	if err != nil || from.Seq > head.Seq {
		return all, nil
	}
	entries, err := w.log.Entries(ctx, max(0, from.Seq-1), maxChanges+1)
	if err != nil {
		return authapi.WatchKeysResponse{}, err
	}
	if from.Seq > 0 {
		if len(entries) == 0 || entries[0].Hash != from.Hash { // the hash covers the number, too
			return all, nil // this is a different log, because a backup was restored
		}
		entries = entries[1:]
	}
	if len(entries) == 0 || len(entries) >= maxChanges {
		return all, nil
	}
	last := entries[len(entries)-1]
	answer := authapi.WatchKeysResponse{At: adminapi.Head{Seq: last.Seq, Hash: last.Hash}.String()}
	for _, e := range entries {
		if id, ok := audit.KeyOf(e.Subject); ok {
			answer.Keys = append(answer.Keys, id)
		}
		if name, ok := audit.BrokerOf(e.Subject); ok {
			answer.Brokers = append(answer.Brokers, name)
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return authapi.WatchKeysResponse{}, fmt.Errorf("encode changes: %w", err)
	}
	if len(text) > maxNames {
		return all, nil
	}
	return answer, nil
}
