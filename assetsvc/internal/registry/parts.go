package registry

import (
	"context"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/identity"
)

// Place is the address of a part of an asset.
type Place struct {
	Asset string // id
	Part  asset.Part
	ID    string // id of the part; "": all parts of the kind, or a new part
}

// selection selects the part. For a new part it selects none.
func (p Place) selection() asset.Selection {
	if p.ID == "" {
		return asset.Selection{}
	}
	return asset.Selection{Part: p.Part, ID: p.ID}
}

// ReadPart returns a part and the position of its asset, or a fault of kind
// NotFound.
func (r *Registry) ReadPart(ctx context.Context, at Place) (record.Object, int64, error) {
	a, stored, err := r.look(ctx, at.Asset, at.selection())
	if err != nil {
		return nil, 0, err
	}
	part, err := a.Part(at.Part, at.ID)
	return part, stored.Position, err
}

// ReadParts returns the parts of one kind that an asset has, and the position of the asset.
func (r *Registry) ReadParts(ctx context.Context, at Place, s asset.Scope) (record.List, int64, error) {
	a, stored, err := r.look(ctx, at.Asset, asset.Selection{Part: at.Part, Scope: s})
	if err != nil {
		return nil, 0, err
	}
	return a.Parts(at.Part, s), stored.Position, nil
}

// Download returns the URL of one version of a part. The argument `key` says which version.
func (r *Registry) Download(ctx context.Context, at Place, key string) (string, error) {
	a, _, err := r.look(ctx, at.Asset, at.selection())
	if err != nil {
		return "", err
	}
	to, err := a.Download(at.Part, at.ID, key)
	if err != nil {
		return "", err
	}
	return r.download(to), nil
}

// ChangePart adds, changes or removes a part, depending on the verb. It returns the part (nil if it was removed) and
// the new position of the asset. The parameter `token` is the owner token, or "" if the caller sent none.
func (r *Registry) ChangePart(
	ctx context.Context, by identity.Identity, at Place, token string, verb asset.Verb, in Input,
) (record.Object, int64, error) {
	var part record.Object
	var file asset.File
	if verb == asset.Add || verb == asset.Replace { // other verbs do not change the file
		var err error
		if in.Fields, file, err = r.bind(ctx, by, at, token, in.Fields); err != nil {
			return nil, 0, err
		}
	}
	var ignored []string
	apply := func(current asset.Asset, _ int64, as asset.Caller) (next asset.Asset, err error) {
		next, part, err = r.rules.ChangePart(current, asset.PartChange{
			Part:    at.Part,
			ID:      at.ID,
			Verb:    verb,
			Fields:  in.Fields,
			File:    file,
			Caller:  as,
			Version: in.Version,
			Now:     r.now(),
			NewID:   newID,
		})
		ignored = next.Ignored()
		return next, err
	}
	changed, err := r.change(ctx, by, at.Asset, token, in.Guard, apply)
	if err != nil {
		return nil, 0, err
	}
	in.tell(ignored)
	return part, changed.Position, nil
}

// Admit refuses a caller who is not allowed to change a part. It is for a request whose body cannot be read: the
// refusal must come before the fault of the body. The owner token may be in the unreadable body. So a caller without a
// token counts as the owner if the key is a key of the owner's broker.
func (r *Registry) Admit(ctx context.Context, by identity.Identity, at Place, token string) error {
	a, stored, err := r.look(ctx, at.Asset, at.selection())
	if err != nil {
		return err
	}
	as, err := r.standing(ctx, by, a, token, stored.Sealed)
	if err != nil {
		return err
	}
	if token == "" && by.Broker == as.owner {
		as.role = asset.Owner
	}
	caller := asset.Caller{Role: as.role, NotOwner: as.notOwner(by, token, tokenOfWrite)}
	return withinTest(by, a.Admit(caller, at.Part, at.ID), a)
}
