package snapshot

import (
	"context"
	"errors"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/sleep"
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
	pause := min(max(k.o.Interval/looks, leastLook), mostLook)
	for next, isFirst := k.discard, true; ctx.Err() == nil; isFirst = false {
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
		sleep.For(ctx, pause)
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

// isOutgrown reports whether the newest snapshot has no assets, although the store has changed since. The first assets
// of a registry do not wait for the interval.
func (k *Keeper) isOutgrown(ctx context.Context) bool {
	newest, err := k.Newest()
	if err != nil || newest.Assets > 0 {
		return false
	}
	now, err := k.store.Page(ctx, registry.HorizonQuery())
	return err == nil && now.Upto > newest.Position
}

// makeDue makes a snapshot if one is due. Otherwise it makes the whole copies of the newest snapshot if they are
// missing.
func (k *Keeper) makeDue(ctx context.Context) error {
	if !k.isDue() && !k.isOutgrown(ctx) {
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

// The lengths of a maker's rests, as multiples of the time that it worked before. The rests leave processor and
// disk to other work.
const (
	restAlone  = 1 // the maker rests as long as it worked
	restBeside = 3 // while the feed grows, the maker rests three times as long as it worked
	restMost   = 9 // if the maker slows down the writes of others, it rests for at most nine times its work
)

// mostLost limits how much a maker may slow down others: because of the maker, the number of their writes may fall
// by at most this share.
const mostLost = 0.1

// Writer is a Store that can report how many writes it has made, and how long they took together.
type Writer interface {
	Writes() (count int64, took time.Duration)
}

// pace decides how long a maker rests.
type pace struct {
	store  Store
	pause  func(ctx context.Context, d time.Duration) error
	upto   int64 // horizon at the last call of look
	beside bool  // others have written between the last two calls of look

	seen             mean // all writes up to the last call of count
	working, resting mean // recent writes while the maker worked, and while it rested
}

// mean has the number of writes and the time that they took together. Their mean time is computed from these two.
type mean struct{ count, took float64 }

// add adds the writes in w. With each call, earlier writes get less weight.
func (m *mean) add(w mean) {
	const fade = 0.95
	m.count, m.took = fade*m.count+w.count, fade*m.took+w.took
}

// look finds out whether others have written since the last call of look.
func (p *pace) look(ctx context.Context) error {
	now, err := p.store.Page(ctx, registry.HorizonQuery())
	if err != nil {
		return err
	}
	p.beside, p.upto = now.Upto != p.upto, now.Upto
	return nil
}

// rest pauses after a period of work. The argument `worked` is the length of this period.
func (p *pace) rest(ctx context.Context, worked time.Duration) error {
	p.count(&p.working)
	err := p.pause(ctx, time.Duration(p.factor()*float64(worked)))
	p.count(&p.resting)
	return err
}

// count adds to a mean the writes since the last call.
func (p *pace) count(to *mean) {
	w, ok := p.store.(Writer)
	if !ok {
		return
	}
	n, took := w.Writes()
	now := mean{float64(n), float64(took)}
	if p.seen.count > 0 {
		to.add(mean{now.count - p.seen.count, now.took - p.seen.took})
	}
	p.seen = now
}

// factor returns the length of the maker's rest, as a multiple of the time that it worked before. A write takes
// longer while the maker works than while it rests, so others can make fewer writes. While others write, factor
// makes the rest so long that the number of their writes falls by at most the share mostLost.
func (p *pace) factor() float64 {
	const enough = 10 // fewer writes than this say too little about their mean time
	switch {
	case !p.beside:
		return restAlone
	case p.working.count < enough || p.resting.count < enough || p.working.took == 0:
		return restBeside
	}
	lost := 1 - (p.resting.took/p.resting.count)/(p.working.took/p.working.count)
	return min(max(lost/mostLost-1, restBeside), restMost)
}
