package snapshot

import (
	"context"
	"errors"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/failurelog"
)

// The method Run checks again and again whether a snapshot is due. The time between two checks has these limits.
const (
	leastLook = time.Second
	mostLook  = time.Minute
	looks     = 20 // number of checks in an interval
)

// Run first removes the files that a killed process has left, and the snapshots of data that the store no longer
// has (the method `discard`). Then, until ctx is done, it makes a snapshot whenever the newest snapshot is older than
// the interval. It calls the function `failed` with each error.
func (k *Keeper) Run(ctx context.Context, failed func(error)) {
	failures := failurelog.NewState(k.o.Log, "no snapshot can be made; it is tried again")
	tick := time.NewTicker(min(max(k.o.Interval/looks, leastLook), mostLook))
	defer tick.Stop()
	for next, isFirst := k.discard, true; ; isFirst = false {
		switch err := next(ctx); {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrBusy): // another process makes a snapshot
		case err != nil:
			failures.Failed(err)
			failed(err)
		case k.o.Interval <= 0:
			failures.Worked()
			<-ctx.Done()
			return
		default:
			failures.Worked()
			if next = k.makeDue; isFirst && (k.isDue() || k.lacksCopies()) {
				continue
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// discard removes the files that a killed process has left. It also removes snapshots whose position is after
// the horizon: the data of the store was replaced after they were made. It returns ErrBusy while another process
// makes a snapshot.
func (k *Keeper) discard(ctx context.Context) error {
	unlock, err := k.lock()
	if err != nil {
		return err
	}
	defer unlock()
	now, err := k.store.Page(ctx, registry.HorizonQuery())
	if err != nil {
		return err
	}
	return k.tidy(func(old Manifest) bool { return old.Position <= now.Upto })
}

// isDue reports whether the newest snapshot is older than the interval. If the snapshot's time is in the future by
// more than the interval, a clock was wrong, and a new snapshot is due, too.
func (k *Keeper) isDue() bool {
	newest, err := k.Newest()
	return err != nil || k.o.Now().Sub(newest.Time()).Abs() >= k.o.Interval
}

// makeDue makes a snapshot if one is due. Otherwise it makes the whole copies of the newest snapshot if they are
// missing.
func (k *Keeper) makeDue(ctx context.Context) error {
	if !k.isDue() {
		return k.makeMissingCopies(ctx)
	}
	m, err := k.Make(ctx)
	if err == nil {
		k.o.Log.Info("a snapshot was made", "assets", m.Assets, "segments", len(m.Segments), "bytes", m.Bytes,
			"seconds", k.o.Now().Sub(m.Time()).Seconds())
	}
	return err
}

// Time returns the time at which the snapshot was begun.
func (m Manifest) Time() time.Time { return time.UnixMicro(m.Begun) }
