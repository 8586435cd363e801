// Package publiclog makes the public log of changes (docs/log.md) from the record of changes, and reads it.
//
// The record determines the log: its leaves are the public changes below the horizon, in the order of their
// positions. The record below the horizon never changes (R2), so every process makes the same log.
//
// A Store keeps the full parts of the tree and one Head. A process first stores the new parts. Then it replaces
// the head, unless another process has replaced the head meanwhile. All processes compute the same parts, so
// parts that were stored before a crash do no harm.
//
// A process signs only the tree of the stored head. A new head always has the same tree or a tree that continues
// it. So two different trees of the same size are never signed.
package publiclog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// Head is the state of the log. The zero Head belongs to an empty log without a checkpoint.
type Head struct {
	Version    int64         // how often the stored head was replaced
	Position   int64         // the tree has all public changes up to this position
	Tree       translog.Tree // the right edge of the tree
	Checkpoint []byte        // the newest signed checkpoint, for this tree or an earlier one; nil: none
}

// ErrNoPart is returned for a part that the log does not have. Its cause is fs.ErrNotExist (translog.PartReader).
var ErrNoPart = fmt.Errorf("the log has no such part: %w", fs.ErrNotExist)

// Store keeps the log. It is safe for concurrent use. Each method reads or changes the state at a single
// moment.
type Store interface {
	// LogHead returns the head, or the zero Head if none is stored.
	LogHead(ctx context.Context) (Head, error)
	// ExtendLog stores full parts. Then it stores the head with the version head.Version+1, if the stored head
	// has the version head.Version. It reports whether it stored the head. After an error, it is unknown whether
	// the parts and the head are stored.
	ExtendLog(ctx context.Context, head Head, parts []translog.Part) (stored bool, err error)
	// LogPart returns the data of a full part, or ErrNoPart.
	LogPart(ctx context.Context, tile translog.Tile) ([]byte, error)
}

// Record is the record of changes (registry.Store).
type Record interface {
	Changes(ctx context.Context, q registry.ChangesQuery) (registry.ChangesPage, error)
}

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
