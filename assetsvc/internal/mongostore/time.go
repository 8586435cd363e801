package mongostore

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxAhead is how far this machine's clock may be ahead of the store's clock.
const maxAhead = time.Second

// storeTime is this machine's clock, limited by the store's clock. Positions
// never step back, so a clock one day ahead would move all later positions of the
// registry a day ahead.
type storeTime struct {
	own func() time.Time
	log *slog.Logger

	mu    sync.Mutex
	store time.Time // the store's clock when it was read
	at    time.Time // when it was read, on this process's monotonic clock
	ahead bool
}

// now returns this machine's time, or the store's time if this machine's is more
// than maxAhead ahead. Call measure first.
func (t *storeTime) now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own()
	if store := t.store.Add(time.Since(t.at)); own.Sub(store) > maxAhead {
		return store
	}
	return own
}

// measure reads the store's clock and returns how far this machine's clock is
// ahead of it. It logs when the lead exceeds maxAhead, and when it no longer does.
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
		t.log.Warn("this machine's clock is ahead of the store's clock; positions follow the store's", "lead", lead)
	case !ahead && t.ahead:
		t.log.Info("this machine's clock agrees with the store's clock again")
	}
	t.ahead = lead > maxAhead
	return lead, nil
}
