package mongostore

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxAhead is how far positions by the store's clock may be ahead of this machine's.
const maxAhead = time.Second

// storeTime is the store's clock, which all processes read, so their positions agree
// however their machines' clocks differ or jump. It is limited by this machine's clock.
// Positions never step back, so a clock one day ahead would move all later positions of
// the registry a day ahead. Only if both clocks are ahead can that happen.
type storeTime struct {
	own    func() time.Time
	before time.Time // own when the process began
	began  time.Time // when that was, on this process's monotonic clock
	log    *slog.Logger

	mu     sync.Mutex
	store  time.Time // the store's clock when it was read
	at     time.Time // when it was read, on this process's monotonic clock
	differ bool
}

func newStoreTime(own func() time.Time, log *slog.Logger) *storeTime {
	return &storeTime{own: own, before: own(), began: time.Now(), log: log}
}

// now returns the store's time, or this machine's before measure has read that. If the store's is
// more than maxAhead after this machine's time, now returns this machine's. A step back of this
// machine's clock does not count: the time since the process began is enough.
func (t *storeTime) now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own()
	if t.at.IsZero() {
		return own
	}
	store, steady := t.store.Add(time.Since(t.at)), t.before.Add(time.Since(t.began))
	if store.Sub(own) > maxAhead && store.Sub(steady) > maxAhead {
		return own
	}
	return store
}

// measure reads the store's clock and returns how far this machine's clock is
// ahead of it. It logs when they differ by more than maxAhead, and when they no longer do.
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
	switch differ := lead.Abs() > maxAhead; {
	case differ && !t.differ:
		t.log.Warn("the clocks of this machine and of the store differ; positions follow the store's", "lead", lead)
	case !differ && t.differ:
		t.log.Info("the clocks of this machine and of the store agree again")
	}
	t.differ = lead.Abs() > maxAhead
	return lead, nil
}
