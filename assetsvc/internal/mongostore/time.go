package mongostore

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/feed"
)

// storeTime is MongoDB's clock. All processes take positions from it, so that positions agree even if the machines'
// clocks differ or jump. Positions never step back. So if the store's clock was a day ahead once, all later
// positions would be a day ahead. To prevent this, the machine's clock limits the store's clock, unless peers
// and the newest position confirm that one (feed.Confirmed).
type storeTime struct {
	own    func() time.Time
	others func() []time.Time // the clocks of peers
	before time.Time          // the result of own() when the process began
	began  time.Time          // when the process began, on its monotonic clock
	log    *slog.Logger

	mu     sync.Mutex
	store  time.Time // what the store's clock showed when it was last read
	at     time.Time // when it was last read, on this process's monotonic clock
	differ bool
	agreed bool // peers and the newest position have confirmed what it showed
}

func newStoreTime(own func() time.Time, others func() []time.Time, log *slog.Logger) *storeTime {
	return &storeTime{own: own, others: others, before: own(), began: time.Now(), log: log}
}

// The method `now` returns the store's time. In two cases it returns the time of this machine's clock instead:
// before the store's clock is first read (measure), and while the store's time is too far ahead and not confirmed. Then
// it is more than feed.MaxAhead later than this machine's clock, and than this clock would be if nobody had set it
// since the process began.
func (t *storeTime) now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own()
	if t.at.IsZero() {
		return own
	}
	store, steady := t.store.Add(time.Since(t.at)), t.before.Add(time.Since(t.began))
	if store.Sub(own) > feed.MaxAhead && store.Sub(steady) > feed.MaxAhead && !t.agreed {
		return own
	}
	return store
}

// Clock returns what MongoDB's clock shows now, as last read.
func (s *Store) Clock(context.Context) (time.Time, error) {
	t := s.time
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() {
		return time.Time{}, errUnasked
	}
	return t.store.Add(time.Since(t.at)), nil
}

// measure reads the store's clock, and returns how far this machine's clock is ahead of it. The argument `last` is the
// newest position, just read. It logs when the two clocks begin to differ by more than feed.MaxAhead, and when they
// agree again.
func (t *storeTime) measure(ctx context.Context, d *database, last int64) (lead time.Duration, err error) {
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
	own := t.own()
	t.agreed = feed.Confirmed(t.store, own, t.others(), last)
	lead = own.Sub(t.store.Add(time.Since(t.at)))
	switch differ := lead.Abs() > feed.MaxAhead; {
	case differ && !t.differ:
		t.log.Warn("the clocks of this machine and of the store differ", "lead", lead, "peers confirm the store's", t.agreed)
	case !differ && t.differ:
		t.log.Info("the clocks of this machine and of the store agree again")
	}
	t.differ = lead.Abs() > feed.MaxAhead
	return lead, nil
}
