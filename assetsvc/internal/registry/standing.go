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

// accreditation is the level that a key needs to create an asset or to take one
// over (contract, section 6.2).
const accreditation = '3'

// barred tells why a key's accreditation lets it neither create an asset nor take
// one over; "" if it does.
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

// testOnly is why a key with level t changes no real asset.
const testOnly = "this API key is test-only (level t), and changes assets in test mode only"

// withinTest returns the rules' verdict on a change. It refuses a test-only key
// instead if the asset before or after the change is a real one (contract, decision
// 23). A missing part is still reported first.
func withinTest(by identity.Identity, verdict error, assets ...asset.Asset) error {
	isReal := func(a asset.Asset) bool { return !a.Test() }
	if by.TestOnly() && fault.KindOf(verdict) != fault.NotFound && slices.ContainsFunc(assets, isReal) {
		return forbidden(testOnly)
	}
	return verdict
}

// standing is what a caller is for an asset.
type standing struct {
	role   asset.Role
	owner  string // of the asset
	sealed string // its token record; an asset that was set back has an older one than the auth service

	resealed bool // that record says just what the asset's does: it is not worth a change of its own
}

// standing tells what a caller is for an asset (contract, section 2.1): its owner,
// when the key is the owner's and the token the asset's, or what the key says.
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

// How an owner token is sent (interface document, Authentication).
const (
	tokenOfRead  = "header X-Access-Token or query acc_token"
	tokenOfWrite = "header X-Access-Token, query acc_token or body access.token"
)

// notOwner tells why a broker is not the asset's owner, and what to do; "" for
// anybody else. It tells another broker nothing of a token.
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
