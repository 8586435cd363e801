package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"asset-registry/shared/boltfile"
	"asset-registry/shared/closing"
	"asset-registry/shared/daemon"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/replica"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// nextDirectory contains the next copy, which is made while the old one is served.
const nextDirectory = "next"

var (
	errVerified = errors.New("the new copy is verified")
	errRenewed  = errors.New("a new copy, which a signed log covers, takes the place of the old one")
)

// subject tells whether a doubt is about the data of the origin or about its log.
type subject int

const (
	aboutData subject = iota
	aboutLog
)

// doubts are reasons to think that the copy is void, by their subjects. No signature has confirmed them.
type doubts struct{ held sync.Map }

// add adds a doubt. It returns true if the subject had no doubt before.
func (d *doubts) add(about subject, err error) (first bool) {
	_, known := d.held.Swap(about, err)
	return !known
}

func (d *doubts) clear(about subject) { d.held.Delete(about) }

func (d *doubts) any() (found bool) {
	d.held.Range(func(_, _ any) bool {
		found = true
		return false
	})
	return found
}

// survives reports whether the mirror keeps the copy after the error `err`, which says that the copy may be void.
// If the mirror has a policy and has served the copy before, it keeps the copy until a new one is verified, because
// an answer without a signature does not prove that the copy is void. A damaged copy is never kept. If the mirror
// keeps the copy, survives records the doubt.
func (k *keeper) survives(err error) bool {
	if k.policy == nil || !k.servedBefore() || errors.Is(err, replica.ErrUnsound) || errors.Is(err, boltfile.ErrDamaged) {
		return false
	}
	about := aboutLog
	if errors.Is(err, replica.ErrOtherData) {
		about = aboutData
	}
	if k.doubts.add(about, err) {
		k.mirror.log.Warn("the copy may be void; the old one is served until a new one is verified", "error", err)
	}
	return true
}

// lacksLog reports whether the registry has no log although it must have one: the mirror demands a signed log,
// and the copy has public assets, which a log would contain.
func (k *keeper) lacksLog() bool {
	if k.policy == nil || k.servedBefore() {
		return false
	}
	assets := k.assets.Load()
	if assets == nil {
		return true // until the copy is open, nobody knows which assets it has; a later call finds out
	}
	if _, err := assets.Checkpoint(context.Background()); err == nil {
		return false
	}
	public := false
	_, err := k.copied.Replica.Feed(replica.FeedQuery{Real: true}, func(replica.Entry) bool {
		public = true
		return false
	})
	return err != nil || public
}

// renew waits until there are doubts about this copy, and then makes a new one. It returns errRenewed once the new
// copy is verified.
func (k *keeper) renew(ctx context.Context) error {
	next := k.mirror.beside()
	pause := anewFirst
	if m := k.mirror; m.renewals > 0 { // this copy has replaced another
		sleep.For(ctx, min(anewFirst<<m.renewals, anewMost)-time.Since(m.renewed))
	}
	for ctx.Err() == nil {
		if !k.doubts.any() {
			sleep.For(ctx, time.Second)
			continue
		}
		if err := errors.Join(os.RemoveAll(next.config.Data), os.MkdirAll(next.config.Data, 0o700)); err != nil {
			k.failures.Failed(err)
		}
		err := k.build(ctx, next)
		if errors.Is(err, errVerified) {
			err = k.replaces(ctx, next.head)
		}
		if err == nil && k.doubts.any() {
			return errRenewed
		}
		if k.doubts.any() && ctx.Err() == nil {
			// The pauses limit the number of these lines. A failurelog.Log would show only the first of several reasons.
			k.mirror.log.Warn("no new copy takes the place of the old one; it is tried again", "error", err)
		}
		sleep.For(ctx, pause)
		pause = min(2*pause, anewMost)
	}
	return ctx.Err()
}

// build makes the next copy. It ends when that copy is verified, or when the doubts about the old copy are
// gone.
func (k *keeper) build(ctx context.Context, next *mirror) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching closing.List
	watching.Go(ctx, func(ctx context.Context) {
		for ctx.Err() == nil && k.doubts.any() {
			sleep.For(ctx, time.Second)
		}
		cancel()
	})
	return errors.Join(next.keep(ctx), watching.Close())
}

// replaces returns nil if the verified copy may replace this copy. It returns an error if both copies have the same
// log, and the log of the verified copy is shorter.
func (k *keeper) replaces(ctx context.Context, next translog.Checkpoint) error {
	assets := k.assets.Load()
	if assets == nil {
		return nil
	}
	old, err := assets.Checkpoint(ctx)
	if err == nil && old.Origin == next.Origin && old.Size > next.Size {
		return fmt.Errorf("%w: the new copy has %d leaves, and the old one %d", translog.ErrConsistency, next.Size, old.Size)
	}
	return nil
}

// The method `beside` returns a mirror that makes the next copy but does not serve it.
func (m *mirror) beside() *mirror {
	c := m.config
	c.Data, c.SnapshotInterval = filepath.Join(c.Data, nextDirectory), 0
	next := &mirror{config: c, of: m.of, policy: m.policy, transport: m.transport, log: m.log.With("copy", nextDirectory),
		telemetry: m.telemetry, relay: m.relay, count: m.count, isBeside: true,
		failures: failurelog.New(m.log, "the new copy cannot be brought up to date; it is tried again"), unkept: m.unkept}
	next.front = daemon.NewReplaceable(next.waiting())
	return next
}

// swap replaces the old copy by the next one. Both must be closed. The file that says that the copy was served is
// moved last: if the process is killed before this move, the next start compares the copy with the log again.
func (m *mirror) swap() error {
	if err := m.remove(); err != nil {
		return err
	}
	for _, name := range []string{replica.FileName, logFile, originFile} {
		from := filepath.Join(m.config.Data, nextDirectory, name)
		if err := os.Rename(from, filepath.Join(m.config.Data, name)); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(m.config.Data, nextDirectory))
}
