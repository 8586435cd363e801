package snapshot

import (
	"context"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

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
