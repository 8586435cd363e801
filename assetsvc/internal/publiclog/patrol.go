package publiclog

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// Patrol verifies the stored log again and again, as every reader of it can: all leaves, all
// parts and the root of the newest checkpoint.
type Patrol struct {
	verifier translog.Verifier
	log      Parts
	every    time.Duration
	found    atomic.Pointer[string]
}

// NewPatrol returns a patrol of a log. The policy opens its checkpoints. Every is the time
// between two verifications.
func NewPatrol(log *Reader, policy *translog.Policy, every time.Duration) *Patrol {
	return &Patrol{verifier: translog.Verifier{Policy: policy}, log: Parts{log}, every: every}
}

// Damage tells what is damaged, as the last verification has found it; "": nothing.
func (p *Patrol) Damage() string {
	if found := p.found.Load(); found != nil {
		return *found
	}
	return ""
}

// Run verifies the log until ctx is done, at first at once. Report gets the error of each
// verification, with the cause registry.ErrDamagedLog if the log is damaged. An error of the
// store says nothing about the log: what was found before stays.
func (p *Patrol) Run(ctx context.Context, report func(err error)) {
	for {
		_, err := p.verifier.Verify(ctx, slowly{p.log})
		switch err = damage(err); {
		case ctx.Err() != nil:
			return
		case err == nil || errors.Is(err, ErrUnsigned):
			p.found.Store(nil)
		default:
			if says := err.Error(); errors.Is(err, registry.ErrDamagedLog) {
				p.found.Store(&says)
			}
			report(err)
		}
		if !sleep.For(ctx, p.every) {
			return
		}
	}
}

// slowly reads parts with a pause after each, so that the store has time for other work.
type slowly struct{ Parts }

func (s slowly) ReadPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	began := time.Now()
	data, err := s.Parts.ReadPart(ctx, tile)
	sleep.For(ctx, rest*time.Since(began))
	return data, err
}
