// Package endings keeps the endings of keys beside the assets (authapi.Ending). The store of assets does not go back in
// time together with the store of keys. So what ended a key is known after a failover or a restore of the latter.
package endings

import (
	"context"
	"log/slog"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/sleep"
)

// Store keeps endings. It is safe for concurrent use, also by several processes.
type Store interface {
	// KeepEndings durably stores endings, one after the other. A stored ending with the same id stays if its number is
	// as great or greater.
	KeepEndings(ctx context.Context, endings []authapi.Ending) error
	// Ending returns the ending with an id. It is zero if there is none.
	Ending(ctx context.Context, id string) (authapi.Ending, error)
	// Endings returns up to limit endings in the order of their ids. The first one follows the id `after`.
	Endings(ctx context.Context, after string, limit int) ([]authapi.Ending, error)
}

// Auth is the auth service (authapi.Client).
type Auth interface {
	Endings(ctx context.Context, r authapi.EndingsRequest) (authapi.EndingsResponse, error)
}

// keeper asks the auth service for endings, and keeps them.
type keeper struct {
	store Store
	auth  Auth
}

const (
	wait  = time.Second            // time that the auth service waits for an ending
	pause = 250 * time.Millisecond // time between two questions after a failure
	least = 20 * time.Millisecond  // least time between two questions
)

// Keep keeps endings until ctx is done.
func Keep(ctx context.Context, store Store, auth Auth, log *slog.Logger) {
	k := keeper{store, auth}
	failures := failurelog.NewState(log, "endings of keys cannot be kept beside the assets; it is tried again")
	defer failures.Close()
	for ctx.Err() == nil {
		began := time.Now()
		if err := k.exchange(ctx); err == nil {
			failures.Worked()
			sleep.For(ctx, least-time.Since(began)) // perhaps the auth service does not wait
		} else if ctx.Err() == nil {
			failures.Failed(err)
			sleep.For(ctx, pause)
		}
	}
}

// exchange confirms what the store keeps, and keeps the endings of later entries. If the auth service lacks the newest
// entry that the store knows, exchange sends all endings.
func (k keeper) exchange(ctx context.Context) error {
	at, err := k.store.Ending(ctx, authapi.HeadID)
	if err != nil {
		return err
	}
	answer, err := k.auth.Endings(ctx, authapi.EndingsRequest{At: at, WaitMS: wait.Milliseconds()})
	for after, last := "", false; err == nil && answer.Behind && !last; {
		r := authapi.EndingsRequest{At: at}
		if r.Endings, err = k.store.Endings(ctx, after, authapi.MaxEndings); err != nil {
			return err
		}
		last = len(r.Endings) < authapi.MaxEndings
		if r.Last = last; !last {
			after = r.Endings[len(r.Endings)-1].ID
		}
		answer, err = k.auth.Endings(ctx, r)
	}
	if err != nil || len(answer.Endings) == 0 {
		return err
	}
	return k.store.KeepEndings(ctx, answer.Endings)
}
