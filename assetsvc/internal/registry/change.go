package registry

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// decision is what the rules make of an asset for a caller.
type decision func(current asset.Asset, as asset.Caller) (asset.Asset, error)

// change loads an asset, has decide make of it what it is to be, and saves
// that if it differs; anew, when others have changed the asset meanwhile. What
// the guard lets through is saved only as long as nobody has.
func (r *Registry) change(ctx context.Context, by identity.Identity, id, token string, guard Guard, decide decision) (Record, error) {
	if by.IsAnonymous() {
		return Record{}, forbidden("an API key is needed")
	}
	var as standing
	return r.save(ctx, id, step{
		ask: func(stored Record) error {
			current, err := decode(stored)
			if err != nil {
				return err
			}
			as, err = r.standing(ctx, by, current, token, stored.Sealed)
			return err
		},
		decide: func(stored Record) (Record, error) {
			changed, err := r.decide(by, as, token, stored, decide)
			return changed, guard.check(stored, err)
		},
	})
}

// step is a change of an asset, as save makes it.
type step struct {
	// ask learns from the auth service what decide has to know. The answer is
	// valid for as long as the asset has the same sealed token record.
	ask func(stored Record) error
	// decide returns stored as it is to be saved, without a body if nothing is.
	// It waits for nobody.
	decide func(stored Record) (Record, error)
}

// errAskAgain is returned for an asset whose sealed token record has changed
// since the step has asked.
var errAskAgain = errors.New("the asset has other tokens by now")

// save loads an asset, and saves what the step makes of it; anew, when others
// have changed the asset meanwhile. It asks before it takes the asset's turn, so
// that a slow auth service holds up no other change, and asks again only if the
// asset has got other tokens.
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
		saved, err := r.saveInTurn(ctx, turn, ended, stored, s.decide)
		if !errors.Is(err, errAskAgain) {
			return saved, err
		}
	}
	return Record{}, contended()
}

// saveInTurn saves what decide makes of an asset, in the asset's turn. Stored is
// the asset as it was when ended turns had ended: if more have by now, it is read
// again. It returns errAskAgain if the asset has other tokens than stored.
func (r *Registry) saveInTurn(ctx context.Context, turn *turn, ended int64, stored Record, decide func(Record) (Record, error)) (Record, error) {
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
		changed, err := decide(stored)
		if err != nil {
			return Record{}, err
		}
		if changed.Body == nil {
			return stored, nil
		}
		changed.Position, err = r.store.Replace(ctx, changed)
		switch {
		case errors.Is(err, ErrStale):
			newest = false
			continue
		case err != nil:
			return Record{}, unavailable("change asset "+stored.ID, err)
		}
		changed.Revision++
		r.events.change(ctx, stored, changed)
		return changed, nil
	}
	return Record{}, contended()
}

func contended() error {
	return fault.New(fault.Conflict, fault.Body, "data", "Others are changing this asset at the same time; repeat the request.")
}

// decide returns stored as it is to be saved, without a body when nothing differs.
func (r *Registry) decide(by identity.Identity, as standing, token string, stored Record, decide decision) (Record, error) {
	before, err := decode(stored)
	if err != nil {
		return Record{}, err
	}
	current := before.OwnedBy(as.owner)
	next, err := decide(current, asset.Caller{Role: as.role, NotOwner: as.notOwner(by, token, tokenOfWrite)})
	err = withinTest(by, err, before, next)
	if err != nil || next.Equal(current) && (as.resealed || as.sealed == stored.Sealed) {
		return Record{}, err
	}
	return r.changed(stored, before, next, as.sealed, Author{by.Broker, by.KeyID, as.role})
}

// changed returns stored with what it is to be instead of before, and with the
// entry that tells of the change.
func (r *Registry) changed(stored Record, before, next asset.Asset, sealed string, by Author) (Record, error) {
	size := len(stored.Body)
	stored.Listed = next.Listed()
	stored.Test = next.Test()
	stored.State = next.Status()
	stored.Sealed = sealed
	stored.Body = next.Encode()
	if len(stored.Body) > MaxAsset && len(stored.Body) > size {
		return Record{}, fault.New(fault.TooLarge, fault.Body, "data", "The asset would have more than %d bytes.", MaxAsset)
	}
	var err error
	if stored.Origin, err = stored.originAfter(r.now()); err != nil {
		return Record{}, err
	}
	stored.Change, err = r.packer.encodeChange(by, before.Fields(), next.Fields())
	return stored, err
}
