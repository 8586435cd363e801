package registry

import (
	"context"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/identity"
)

// Recovery asks for new tokens of an asset.
type Recovery struct {
	Reason string // goes to the audit log; the registry does not store it
	From   string // address of the caller; "": unknown
}

// Recover gives an asset new tokens, for its owner (docs/recovery.md). One atomic write replaces the sealed token
// record, so the old tokens stop working with that write. The auth service adds an entry to the audit log before
// the write. If the call is interrupted, the request may be repeated; it then makes other tokens.
func (r *Registry) Recover(
	ctx context.Context, by identity.Identity, id string, guard Guard, why Recovery,
) (Created, error) {
	var answer authapi.RecoverTokensResponse
	saved, err := r.save(ctx, id, step{
		ask: func(stored Record) (err error) {
			if _, err = mayRecover(by, stored, guard); err != nil { // checked before the audit log gets an entry
				return err
			}
			answer, err = r.tokens.RecoverTokens(ctx, authapi.RecoverTokensRequest{
				AssetID: id,
				Sealed:  stored.Sealed,
				Reason:  why.Reason,
				Broker:  by.Broker,
				KeyID:   by.KeyID,
				From:    why.From,
			})
			return errs.In(err, "recover asset %s", id)
		},
		next: func(stored Record) (Record, error) {
			current, err := mayRecover(by, stored, guard)
			if err != nil {
				return Record{}, err
			}
			author := Author{by.Broker, by.KeyID, asset.Administrator}
			return r.changed(stored, current, current.OwnedBy(answer.Owner), answer.Sealed, author)
		},
	})
	if err != nil {
		return Created{}, err
	}
	return Created{Record: saved, Token: answer.Token, Transfer: answer.Transfer}, nil
}

// mayRecover returns the asset if the caller's key and the guard allow the caller to give it new tokens.
func mayRecover(by identity.Identity, stored Record, guard Guard) (asset.Asset, error) {
	current, err := decode(stored)
	if err != nil {
		return current, err
	}
	if by.Role != identity.Administrator {
		return current, forbidden("only the administrator recovers assets")
	}
	return current, guard.check(stored, withinTest(by, nil, current))
}
