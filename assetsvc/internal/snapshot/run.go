package snapshot

import (
	"context"
	"errors"
	"time"

	"asset-registry/shared/failurelog"
)

// Bounds of the time between two looks whether a snapshot is due.
const (
	leastLook = time.Second
	mostLook  = time.Minute
	looks     = 20 // in an interval
)

// Run makes a snapshot whenever the newest is older than the interval, until ctx is done.
// It calls failed with each failure. Without an interval it waits only.
func (k *Keeper) Run(ctx context.Context, failed func(error)) {
	if k.o.Interval <= 0 {
		<-ctx.Done()
		return
	}
	failures := failurelog.New(k.o.Log, "no snapshot can be made; it is tried again")
	if err := k.discard(ctx); err != nil && ctx.Err() == nil {
		failures.Failed(err)
	}
	tick := time.NewTicker(min(max(k.o.Interval/looks, leastLook), mostLook))
	defer tick.Stop()
	for {
		switch err := k.makeDue(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, ErrBusy):
			failures.Failed(err)
			failed(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// discard removes what a killed process has left, and snapshots of data that were
// replaced. It does nothing while another process makes a snapshot.
func (k *Keeper) discard(ctx context.Context) error {
	unlock, err := k.lock()
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	horizon, err := k.store.Horizon(ctx)
	if err != nil {
		return err
	}
	return k.tidy(func(old Manifest) bool { return old.Position <= horizon })
}

// makeDue makes a snapshot if the newest is older than the interval.
func (k *Keeper) makeDue(ctx context.Context) error {
	newest, err := k.Newest()
	if err == nil && k.o.Now().Sub(newest.Time()).Abs() < k.o.Interval { // a wrong clock may have made it in the future
		return nil
	}
	m, err := k.Make(ctx)
	if err == nil {
		k.o.Log.Info("a snapshot was made", "assets", m.Assets, "segments", len(m.Segments), "bytes", m.Bytes,
			"seconds", k.o.Now().Sub(m.Time()).Seconds())
	}
	return err
}

// Time returns when the snapshot was begun.
func (m Manifest) Time() time.Time { return time.UnixMicro(m.Begun) }
