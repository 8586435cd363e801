package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// accreditation is the level that a key must have to create an asset or to take one over (docs/contract.md,
// "Accreditation").
const accreditation = '3'

// barred returns why the levels of a key are not enough to create or take over an asset, or "" if they are
// enough.
func barred(by identity.Identity) string {
	if by.Permits(accreditation) {
		return ""
	}
	has := "none"
	if levels := strings.ReplaceAll(by.Levels, "t", ""); levels != "" {
		has = strings.Join(strings.Split(levels, ""), ", ")
	}
	return fmt.Sprintf("level %c is needed, and the levels of this API key are: %s", accreditation, has)
}

// testOnly is the reason why a key with level t is not allowed to change a real asset.
const testOnly = "this API key is test-only (level t), and changes assets in test mode only"

// withinTest refuses a change of a real asset with a test-only key (docs/contract.md, "Accreditation"). The
// argument `assets` has the asset before and after the change. The argument `verdict` is the result of the other
// rules for the change. If the change is allowed, or if the argument `verdict` says that a part is missing,
// withinTest returns this argument.
func withinTest(by identity.Identity, verdict error, assets ...asset.Asset) error {
	isReal := func(a asset.Asset) bool { return !a.Test() }
	if by.TestOnly() && fault.KindOf(verdict) != fault.NotFound && slices.ContainsFunc(assets, isReal) {
		return forbidden(testOnly)
	}
	return verdict
}

// standing has the role of a caller for an asset, and who owns the asset now.
type standing struct {
	role  asset.Role
	owner string // of the asset

	// sealed is the newest token record of the asset. After a restore of the assets, the auth service may have
	// a newer record than the asset.
	sealed   string
	resealed bool // the newest record and the asset's differ only in their seals, so the asset need not be changed
}

// standing returns the standing of a caller (docs/contract.md, "Roles"). The caller is the owner if the key
// belongs to the broker that owns the asset, and the token is the asset's owner token. Otherwise the role depends
// only on the key.
func (r *Registry) standing(
	ctx context.Context, by identity.Identity, a asset.Asset, token, sealed string,
) (standing, error) {
	as := standing{role: asset.Other, owner: a.Owner(), sealed: sealed}
	switch by.Role {
	case identity.Concierge:
		as.role = asset.Concierge
	case identity.Administrator:
		as.role = asset.Administrator
	}
	if token == "" || by.Role != identity.Broker {
		return as, nil
	}
	answer, err := r.tokens.VerifyToken(ctx, authapi.VerifyTokenRequest{
		AssetID: a.ID(), Broker: by.Broker, TokenHash: authapi.Hash(token), Sealed: sealed,
	})
	if err != nil {
		return standing{}, fmt.Errorf("verify token of asset %s: %w", a.ID(), err)
	}
	if answer.Sealed != "" {
		as.owner, as.sealed, as.resealed = answer.Owner, answer.Sealed, answer.Resealed
	}
	if answer.Valid {
		as.role = asset.Owner
	}
	return as, nil
}

// The ways to send an owner token (docs/contract.md, "Owner tokens").
const (
	tokenOfRead  = "header X-Access-Token or query acc_token"
	tokenOfWrite = "header X-Access-Token, query acc_token or body access.token"
)

// notOwner returns why a broker is not the owner of the asset, and what to do about it; it returns "" for the owner
// and for keys of other roles. If the broker is not the owner, the text does not reveal whether the token is right.
// The parameter `ways` lists the ways to send a token.
func (s standing) notOwner(by identity.Identity, token, ways string) string {
	switch {
	case s.role != asset.Other || by.Role != identity.Broker:
		return ""
	case by.Broker != s.owner:
		return "the API key belongs to another broker than the asset; use a key of the asset's owner"
	case token == "":
		return "the owner token is missing; send it as " + ways
	default:
		return "the owner token is wrong; send the one that the asset's creation, or its last transfer, returned"
	}
}

func forbidden(reason string) error {
	return fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden: %s", reason)
}
