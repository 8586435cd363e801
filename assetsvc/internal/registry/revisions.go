package registry

import (
	"cmp"
	"context"
	"errors"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// MaxRevisions is the largest number of changes that Revisions returns.
const MaxRevisions = 100

// Revisions returns changes of an asset, the newest first, and at most the number in the parameter `limit`. If the
// parameter `before` is not 0, it is a position, and only changes below it are returned. Only the owner and the
// administrator may read them (docs/contract.md, "Revisions").
func (r *Registry) Revisions(
	ctx context.Context, by identity.Identity, id, token string, before int64, limit int,
) ([]Change, error) {
	a, stored, err := r.look(ctx, id, asset.Selection{})
	if err != nil {
		return nil, err
	}
	as, err := r.standing(ctx, by, a, token, stored.Sealed)
	if err != nil {
		return nil, err
	}
	if as.role != asset.Owner && as.role != asset.Administrator {
		reason := cmp.Or(as.notOwner(by, token, tokenOfRead), "only the owner and the administrator read revisions")
		return nil, forbidden(reason)
	}
	log, err := r.log(ctx, id, LogQuery{Before: before, Limit: min(limit, MaxRevisions)})
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(log))
	for i, revision := range log {
		if changes[i], err = revision.decode(); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// log returns changes of an asset, or a fault of kind NotFound.
func (r *Registry) log(ctx context.Context, id string, q LogQuery) ([]Revision, error) {
	log, err := r.store.Log(ctx, id, q)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, missing()
	case err != nil:
		return nil, Unavailable("read changes of asset "+id, err)
	}
	return log, nil
}

// Guard gets the position of an asset, and reports whether the asset is still as the client has seen it
// (docs/contract.md, "Conditional requests"). A nil Guard accepts every position.
type Guard func(position int64) bool

// check returns the error that a request must get, or nil. The parameter `refusal` is the error by the rules, or nil
// if the rules permit the change. A refusal comes first if the caller is not allowed to change the asset at all, or if
// the part is missing (RFC 9110, 13.2.1). Otherwise, if the guard does not accept the position of the stored record,
// check returns a fault of kind Precondition.
func (g Guard) check(stored Record, refusal error) error {
	if g == nil || g(stored.Position) || refusal != nil && fault.KindOf(refusal) != fault.Invalid {
		return refusal
	}
	return PreconditionFailed()
}

// PreconditionFailed returns the fault of a request whose conditions do not hold.
func PreconditionFailed() error {
	return fault.New(fault.Precondition, fault.URL, "precondition", "Precondition Failed")
}
