package snapshot

import (
	"context"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

// How many times as long as it worked a maker rests, so that it leaves processor and disk
// to others.
const (
	restAlone  = 1
	restBeside = 3 // while the feed grows
	restMost   = 9 // if writes suffer
)

// mostLost is the most that a maker may take of the writes of others.
const mostLost = 0.1

// Writer is a Store that tells how many writes it has made, and how long they took
// together.
type Writer interface {
	Writes() (count int64, took time.Duration)
}

// pace says how long a maker rests.
type pace struct {
	store  Store
	pause  func(ctx context.Context, d time.Duration) error
	upto   int64 // the horizon when look was called last
	beside bool  // others write

	seen             mean // all writes up to the last look at them
	working, resting mean // the newest writes while the maker worked, and while it rested
}

// mean is the mean time of writes.
type mean struct{ count, took float64 }

// add adds writes. Those that were added before count less each time.
func (m *mean) add(w mean) {
	const fade = 0.95
	m.count, m.took = fade*m.count+w.count, fade*m.took+w.took
}

// look finds out whether others write.
func (p *pace) look(ctx context.Context) error {
	now, err := p.store.Page(ctx, registry.HorizonQuery())
	if err != nil {
		return err
	}
	p.beside, p.upto = now.Upto != p.upto, now.Upto
	return nil
}

// rest rests after work.
func (p *pace) rest(ctx context.Context, worked time.Duration) error {
	p.count(&p.working)
	err := p.pause(ctx, time.Duration(p.factor()*float64(worked)))
	p.count(&p.resting)
	return err
}

// count adds the writes since the last call to a mean.
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

// factor returns how many times as long as it worked the maker rests. Beside others it is
// so much that they lose at most mostLost of their writes: while it works they lose the
// share by which a write takes longer than while it rests.
func (p *pace) factor() float64 {
	const enough = 10 // writes for a mean
	switch {
	case !p.beside:
		return restAlone
	case p.working.count < enough || p.resting.count < enough || p.working.took == 0:
		return restBeside
	}
	lost := 1 - (p.resting.took/p.resting.count)/(p.working.took/p.working.count)
	return min(max(lost/mostLost-1, restBeside), restMost)
}
