package mongostore

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxAhead is how far this process's clock may be ahead of the store's.
const maxAhead = time.Second

// storeTime is this process's clock, held back by the store's: positions never
// step back, so one clock that is a day ahead would take all the registry's
// positions there.
type storeTime struct {
	own func() time.Time
	log *slog.Logger

	mu    sync.Mutex
	store time.Time // what the store's clock showed
	at    time.Time // when, of the steady clock
	ahead bool
}

// now, which is not called before measure, returns what this process's clock shows, or, if that is ahead, what the
// store's does.
func (t *storeTime) now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own()
	if store := t.store.Add(time.Since(t.at)); own.Sub(store) > maxAhead {
		return store
	}
	return own
}

// measure reads the store's clock, and returns how far this process's is ahead.
// It logs when that gets too much, or falls in again.
func (t *storeTime) measure(ctx context.Context, d *database) (lead time.Duration, err error) {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	begun := time.Now()
	err = d.do(ctx, func(ctx context.Context) error {
		return d.clocks.Database().RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
	})
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.store, t.at = hello.LocalTime, begun.Add(time.Since(begun)/2)
	lead = t.own().Sub(t.store.Add(time.Since(t.at)))
	switch ahead := lead > maxAhead; {
	case ahead && !t.ahead:
		t.log.Warn("this machine's clock is ahead of the store's, which is used instead", "lead", lead)
	case !ahead && t.ahead:
		t.log.Info("this machine's clock has fallen in with the store's")
	}
	t.ahead = lead > maxAhead
	return lead, nil
}
