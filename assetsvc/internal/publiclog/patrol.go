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

// Patrol verifies the stored log again and again. It checks what every reader of the log can check: all leaves, all
// parts and the root of the newest checkpoint.
type Patrol struct {
	verifier translog.Verifier
	log      Parts
	every    time.Duration
	found    atomic.Pointer[string]
}

// NewPatrol returns a patrol of the log in store, which reads each part from the store. The policy verifies
// the signatures of checkpoints. The parameter `every` is the time between two verifications.
func NewPatrol(store Store, policy *translog.Policy, every time.Duration) *Patrol {
	return &Patrol{verifier: translog.Verifier{Policy: policy}, log: Parts{&Reader{store: store}}, every: every}
}

// Damage describes the damage that the last verification has found. It returns "" if the log was not damaged.
func (p *Patrol) Damage() string {
	if found := p.found.Load(); found != nil {
		return *found
	}
	return ""
}

// Run verifies the log immediately, and then again and again until ctx is done. It calls the function `report`
// with the error of each verification that fails. The cause is registry.ErrDamagedLog if the log is damaged.
// Another error, such as one of the store, says nothing about the log, so it does not change what Damage
// returns.
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

// slowly reads parts. It pauses after each part, so that the store has time for other work.
type slowly struct{ Parts }

func (s slowly) ReadPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	began := time.Now()
	data, err := s.Parts.ReadPart(ctx, tile)
	sleep.For(ctx, rest*time.Since(began))
	return data, err
}
