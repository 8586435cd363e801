package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

const (
	watchTick  = 100 * time.Millisecond // how often the store is looked at while somebody waits
	watchFresh = 50 * time.Millisecond  // how old a look at it may be, to be shared
	maxChanges = 500                    // more are told as "all",
	maxNames   = 32 << 10               // as are those whose names take more bytes: gateways read no answer that is too long
)

// Watch tells gateways which keys have changed. The audit log is where it
// learns that: every change has an entry, in the store that all auth services
// share.
type Watch struct {
	store Store

	mu   sync.Mutex
	at   time.Time // when the last look began
	head adminapi.Head
}

// NewWatch returns a watch of store.
func NewWatch(store Store) *Watch { return &Watch{store: store} }

// Await returns what has changed since an answer before, once something has or
// the time is over. The answer holds as of a moment after the call.
func (w *Watch) Await(ctx context.Context, since string, wait time.Duration) (authapi.WatchKeysResponse, error) {
	asked := time.Now()
	head, err := w.look(ctx, asked)
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
			return authapi.WatchKeysResponse{}, ctx.Err()
		}
		if head, err = w.look(ctx, time.Now().Add(-watchFresh)); err != nil {
			return authapi.WatchKeysResponse{}, err
		}
	}
	return w.changes(ctx, since, head)
}

// look returns the log's head as it was at a time or later. Many who wait share one look.
func (w *Watch) look(ctx context.Context, notBefore time.Time) (adminapi.Head, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.Before(notBefore) {
		return w.head, nil
	}
	began := time.Now()
	head, err := w.store.Head(ctx)
	if err == nil {
		w.at, w.head = began, head
	}
	return head, err
}

func (w *Watch) changes(ctx context.Context, since string, head adminapi.Head) (authapi.WatchKeysResponse, error) {
	all := authapi.WatchKeysResponse{At: head.String(), All: true}
	from, err := adminapi.ParseHead(since)
	if err != nil || from.Seq > head.Seq {
		return all, nil
	}
	entries, err := w.store.Entries(ctx, max(0, from.Seq-1), maxChanges+1)
	if err != nil {
		return authapi.WatchKeysResponse{}, err
	}
	if from.Seq > 0 {
		if len(entries) == 0 || entries[0].Seq != from.Seq || entries[0].Hash != from.Hash { // another history: an older store was put in place
			return all, nil
		}
		entries = entries[1:]
	}
	if len(entries) == 0 || len(entries) >= maxChanges {
		return all, nil
	}
	last := entries[len(entries)-1]
	answer := authapi.WatchKeysResponse{At: adminapi.Head{Seq: last.Seq, Hash: last.Hash}.String()}
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Subject, ofKey); ok {
			answer.Keys = append(answer.Keys, id)
		}
		if name, ok := strings.CutPrefix(e.Subject, ofBroker); ok {
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
