package registry

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// edit applies the rules to an asset, given its position and the caller, and returns the changed asset.
type edit func(current asset.Asset, position int64, as asset.Caller) (asset.Asset, error)

// change loads an asset, applies the edit, and saves the result if it differs. If another change is saved first, it
// applies the edit to the newest revision instead. The guard must accept that revision too.
func (r *Registry) change(
	ctx context.Context, by identity.Identity, id, token string, guard Guard, apply edit,
) (Record, error) {
	if by.IsAnonymous() {
		return Record{}, forbidden("an API key is needed")
	}
	var (
		as      standing
		current asset.Asset // decoded only once, because decoding is the costliest part of a change
		decoded int64       // the revision of the asset in the variable `current`
	)
	return r.save(ctx, id, step{
		ask: func(stored Record) (err error) {
			if current, err = decode(stored); err != nil {
				return err
			}
			decoded = stored.Revision
			as, err = r.standing(ctx, by, current, token, stored.Sealed)
			return err
		},
		next: func(stored Record) (changed Record, err error) {
			if stored.Revision != decoded {
				if current, err = decode(stored); err != nil {
					return Record{}, err
				}
				decoded = stored.Revision
			}
			changed, err = r.edited(by, as, token, stored, current, apply)
			return changed, guard.check(stored, err)
		},
	})
}

// step has the two functions with which the method `save` makes a change.
type step struct {
	// ask asks the auth service for everything that a call of the function `next` needs. The answer stays valid as
	// long as the asset has the same sealed token record.
	ask func(stored Record) error
	// next returns the record to save. If there is nothing to save, the record has no body. The function must not
	// wait for other services.
	next func(stored Record) (Record, error)
}

// errAskAgain says that the sealed token record has changed since the call of step.ask.
var errAskAgain = errors.New("the tokens of the asset have changed")

// save reads an asset, and stores the result of the step. If another change is stored first, save starts again from the
// newest revision. It calls step.ask before it takes the asset's turn, so a slow auth service does not delay other
// changes. It calls step.ask again only if the tokens of the asset have changed.
//
// save waits until the list has the asset. It waits even if it stores nothing, because an earlier call may have
// published the asset. The client may have lost the answer to that call.
func (r *Registry) save(ctx context.Context, id string, s step) (Record, error) {
	turn := r.turns.of(id)
	for range maxAttempts {
		ended := turn.ended.Load()
		stored, err := r.Read(ctx, id)
		if err != nil {
			return Record{}, err
		}
		if err := s.ask(stored); err != nil {
			return Record{}, err
		}
		saved, err := r.saveInTurn(ctx, turn, ended, stored, s.next)
		if err == nil && saved.Entered > 0 {
			err = r.awaitList(ctx, saved.Entered)
		}
		if !errors.Is(err, errAskAgain) {
			return saved, err
		}
	}
	return Record{}, contended()
}

// saveInTurn waits for the asset's turn, and saves the record that the function `next` returns. The argument
// `ended` is the value that turn.ended had when the caller read the stored record. If turn.ended has another value
// now, saveInTurn reads the asset again. It returns errAskAgain if the sealed token record has changed.
func (r *Registry) saveInTurn(
	ctx context.Context, turn *turn, ended int64, stored Record, next func(Record) (Record, error),
) (Record, error) {
	end, err := turn.take(ctx)
	if err != nil {
		return Record{}, fmt.Errorf("wait to change asset %s: %w", stored.ID, err)
	}
	defer end()
	asked, newest := stored.Sealed, turn.ended.Load() == ended
	for range maxAttempts {
		if !newest {
			if stored, err = r.Read(ctx, stored.ID); err != nil {
				return Record{}, err
			}
			if stored.Sealed != asked {
				return Record{}, errAskAgain
			}
		}
		changed, err := next(stored)
		if err != nil {
			return Record{}, err
		}
		if changed.Body == nil {
			return stored, nil
		}
		changed.Position, err = r.store.Replace(ctx, changed)
		switch {
		case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound): // the asset was changed or removed
			newest = false
			continue
		case err != nil:
			return Record{}, Unavailable("change asset "+stored.ID, err)
		}
		changed.Revision++
		if changed.Listed && (!stored.Listed || changed.Test != stored.Test) {
			changed.Entered = changed.Position
		}
		r.events.change(ctx, stored, changed)
		return changed, nil
	}
	return Record{}, contended()
}

func contended() error {
	const text = "Others are changing this asset at the same time; repeat the request."
	return fault.New(fault.Conflict, fault.Body, "data", text)
}

// edited applies the edit to an asset, and returns the record to save. The asset is given in two forms: as the stored
// record, and decoded (before). If the edit changes nothing, the returned record has no body.
func (r *Registry) edited(
	by identity.Identity, as standing, token string, stored Record, before asset.Asset, apply edit,
) (Record, error) {
	current := before.OwnedBy(as.owner)
	caller := asset.Caller{Role: as.role, NotOwner: as.notOwner(by, token, tokenOfWrite)}
	next, err := apply(current, stored.Position, caller)
	err = withinTest(by, err, before, next)
	if err != nil || next.Equal(current) && (as.resealed || as.sealed == stored.Sealed) {
		return Record{}, err
	}
	return r.changed(stored, before, next, as.sealed, Author{by.Broker, by.KeyID, as.role})
}

// changed returns a copy of a stored record. In the copy, the new asset (next) replaces the old one (before).
// The copy also describes the difference between the two.
func (r *Registry) changed(stored Record, before, next asset.Asset, sealed string, by Author) (Record, error) {
	size, was := len(stored.Body), stored.isPublic()
	stored.Listed = next.Listed()
	stored.Test = next.Test()
	stored.State = next.Status()
	stored.Owner, stored.Former = next.Owner(), before.Owner()
	stored.Sealed = sealed
	stored.Body = next.Encode()
	if len(stored.Body) > MaxAsset && len(stored.Body) > size {
		return Record{}, fault.New(fault.TooLarge, fault.Body, "data", "The asset would have more than %d bytes.", MaxAsset)
	}
	var err error
	if stored.Origin, err = stored.originAfter(r.now()); err != nil {
		return Record{}, err
	}
	err = r.packer.describe(&stored, by, was, before.Fields(), next.Fields())
	return stored, err
}

// turns are locks of assets within the process. Without them, the store would accept one of several simultaneous
// changes of an asset, and all others would have to decide again, round after round. To bound the memory, several
// assets share a lock, so the holder of a lock must not wait for another service.
//
// Repeatable creations have their own turns, whose holder waits for authsvc to make the tokens. Only other
// creations wait for these turns, and they need the same answer.
type turns struct {
	seed  maphash.Seed
	turns [256]turn
}

// turn is a lock that some assets share. Waiting for it ends early if the context of the caller ends.
type turn struct {
	held  chan struct{} // has one element while the lock is held
	ended atomic.Int64  // how many holders have ended their turn
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.turns {
		t.turns[i].held = make(chan struct{}, 1)
	}
	return t
}

// The method `of` returns the turn of an asset.
func (t *turns) of(id string) *turn {
	return &t.turns[maphash.String(t.seed, id)%uint64(len(t.turns))]
}

// take waits for the turn. It returns a function that ends the turn, or the error of ctx.
func (t *turn) take(ctx context.Context) (end func(), err error) {
	select {
	case t.held <- struct{}{}:
		return func() {
			t.ended.Add(1)
			<-t.held
		}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
