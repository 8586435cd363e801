package registry

import (
	"context"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Remove removes a draft for ever, in one atomic write (docs/contract.md, "Removal of drafts"). The parameter `token`
// is the owner token, or "" if the caller sent none. The id and the number of the asset are never used again. The
// record keeps the changes of the draft, but nobody can read them any more.
func (r *Registry) Remove(ctx context.Context, caller identity.Identity, id, token string, guard Guard) error {
	if caller.IsAnonymous() {
		return forbidden("an API key is needed")
	}
	var as standing
	_, err := r.save(ctx, id, step{
		ask: func(stored Record) error {
			current, err := decode(stored)
			if err != nil {
				return err
			}
			as, err = r.standing(ctx, caller, current, token, stored.Sealed)
			return err
		},
		next: func(stored Record) (Record, error) {
			current, err := decode(stored)
			if err != nil {
				return Record{}, err
			}
			by := asset.Caller{Role: as.role, NotOwner: as.notOwner(caller, token, tokenOfRead)}
			err = current.OwnedBy(as.owner).CheckRemoval(by)
			if err = guard.check(stored, withinTest(caller, err, current)); err != nil {
				return Record{}, err
			}
			return r.removed(stored, current, Author{caller.Broker, caller.KeyID, asset.Owner})
		},
	})
	return err
}

// removed returns the record that stays in the store in place of a removed draft.
func (r *Registry) removed(stored Record, draft asset.Asset, by Author) (Record, error) {
	origin, err := stored.originLeft(r.now())
	if err != nil {
		return Record{}, err
	}
	left := Record{
		ID: stored.ID, Position: stored.Position, Revision: stored.Revision, Sealed: stored.Sealed, Origin: origin,
		Former: draft.Owner(), Removed: true, Body: []byte{},
	}
	err = r.packer.describe(&left, by, false, draft.Fields(), record.Object{})
	return left, err
}

// originLeft returns the encoded origin for a removed draft, without the hashes of the fields.
func (r Record) originLeft(now time.Time) (string, error) {
	text, err := r.originAfter(now)
	if err != nil {
		return "", err
	}
	o, err := decodeOrigin(r.ID, text)
	o.Fields, o.SameFields = "", ""
	if err != nil {
		return "", err
	}
	return o.encode()
}

// removedUnder is called when a client repeats the creation of a draft that was removed. It returns the fault for
// the client. It returns nil if the creation is too old to be repeated.
func (r *Registry) removedUnder(stored Record, in Input, seed Seed) error {
	before, err := stored.origin(r.now())
	switch {
	case err != nil || before.Created == 0:
		return err
	case !seed.fingerprint(in).Match(before.request()):
		return anotherRequest()
	default:
		const text = "The asset %s, which this key created, was removed."
		return fault.New(fault.Gone, fault.Header, "Idempotency-Key", text, stored.ID)
	}
}
