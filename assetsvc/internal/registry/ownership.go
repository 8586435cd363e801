package registry

import (
	"context"
	"fmt"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// CreateTransfer creates a transfer, with which the calling broker can take over an asset (docs/contract.md,
// "Transfers"). It checks the object that was sent, but stores nothing of it.
func (r *Registry) CreateTransfer(
	ctx context.Context, by identity.Identity, sent record.Object,
) (created authapi.CreateTransferResponse, err error) {
	if by.Role != identity.Broker {
		return created, forbidden(brokersOnly)
	}
	if err := asset.CheckTransfer(sent); err != nil {
		return created, err
	}
	return r.tokens.CreateTransfer(ctx, by.Broker)
}

// ReadTransfer returns a transfer, or a fault of kind NotFound. If the transfer is claimed for an asset, the
// token record of that asset shows whether the transfer was used.
func (r *Registry) ReadTransfer(ctx context.Context, id string) (authapi.TransferResponse, error) {
	found, err := r.tokens.ReadTransfer(ctx, authapi.ReadTransferRequest{ID: id})
	if err != nil || found.Claimed == "" {
		return found, err
	}
	stored, err := r.Head(ctx, found.Claimed)
	if fault.KindOf(err) == fault.NotFound { // the asset is gone, for example after a restore of the assets
		return found, nil
	}
	if err != nil {
		return found, err
	}
	return r.tokens.ReadTransfer(ctx, authapi.ReadTransferRequest{ID: id, Sealed: stored.Sealed})
}

const brokersOnly = "only a broker's API key takes assets over"

// Handover has what a caller sends to take over an asset.
type Handover struct {
	Transfer string // id of a transfer that the caller has created
	Token    string // transfer token of the asset
}

// ChangeOwner hands an asset over to the caller (docs/contract.md, "Ownership"). One atomic write changes both
// the owner and the sealed token record, so the old tokens stop working with that write. After that write,
// ChangeOwner tells the auth service that the transfer was used. If the call is interrupted, the same request
// may be repeated.
func (r *Registry) ChangeOwner(
	ctx context.Context, by identity.Identity, id string, guard Guard, h Handover,
) (Record, error) {
	var (
		answer  authapi.ChangeOwnerResponse
		written bool
	)
	claim := func(stored Record) (authapi.ChangeOwnerResponse, error) {
		answer, err := r.tokens.ChangeOwner(ctx, authapi.ChangeOwnerRequest{
			AssetID:      id,
			Broker:       by.Broker,
			TransferID:   h.Transfer,
			TransferHash: authapi.Hash(h.Token),
			Sealed:       stored.Sealed,
		})
		return answer, errs.In(err, "change owner of asset %s", id)
	}
	saved, err := r.save(ctx, id, step{
		ask: func(stored Record) (err error) {
			if _, err = mayTakeOver(by, stored, guard); err != nil { // checked before authsvc claims the transfer
				return err
			}
			answer, err = claim(stored)
			if fault.KindOf(err) == fault.Forbidden && r.frees(ctx, h.Transfer) {
				answer, err = claim(stored)
			}
			return err
		},
		next: func(stored Record) (Record, error) {
			current, err := mayTakeOver(by, stored, guard)
			if err != nil || answer.Resealed || answer.Sealed == stored.Sealed { // the caller already has the asset
				return Record{}, err
			}
			author := Author{by.Broker, by.KeyID, asset.Other}
			written = true
			return r.changed(stored, current, current.OwnedBy(answer.Owner), answer.Sealed, author)
		},
	})
	if err != nil || !written {
		return saved, err
	}
	// The same call with the new record tells the auth service that the transfer was used. If the asset has been
	// handed over again in the meantime, the auth service refuses the call. It then knows already that the
	// transfer was used, so the refusal does not matter.
	if _, err = claim(saved); fault.KindOf(err) == fault.Forbidden {
		err = nil
	}
	return saved, err
}

// frees reads the transfer, and reports whether this read has ended a claim that was never used.
func (r *Registry) frees(ctx context.Context, transfer string) bool {
	before, err := r.tokens.ReadTransfer(ctx, authapi.ReadTransferRequest{ID: transfer})
	if err != nil || before.Claimed == "" {
		return false
	}
	after, err := r.ReadTransfer(ctx, transfer)
	return err == nil && after.Claimed == "" && after.AssetID == ""
}

// mayTakeOver returns the asset if the caller's key and the guard allow the caller to take it over. It does not
// check the transfer.
func mayTakeOver(by identity.Identity, stored Record, guard Guard) (asset.Asset, error) {
	current, err := decode(stored)
	if err != nil {
		return current, err
	}
	if by.Role != identity.Broker {
		return current, forbidden(brokersOnly)
	}
	reason := barred(by)
	if reason == "" && by.TestOnly() && !current.Test() {
		reason = testOnly
	}
	if reason != "" {
		const refusal = "Broker Accreditation level does not permit ownership change: %s"
		return current, fault.New(fault.Forbidden, fault.Body, "data", refusal, reason)
	}
	return current, guard.check(stored, nil)
}

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

// Sealed is the sealed token record of an asset.
type Sealed struct {
	ID     string // of the asset
	Sealed string
}

// SealedStore is a Store that can replace a token record by one with the same contents under another seal. This
// does not count as a change of the asset: its revision and its position stay.
type SealedStore interface {
	// SealedAfter returns the token records of the next assets in the order of their ids, at most as many as the
	// parameter `limit` says. It begins after the given id, or with the first asset if the id is empty.
	SealedAfter(ctx context.Context, after string, limit int) ([]Sealed, error)
	// Reseal replaces the record of an asset if the asset still has the old record. Otherwise it does nothing.
	Reseal(ctx context.Context, old, anew Sealed) error
}

// Resealer seals records again, with the registry's current secret.
type Resealer interface {
	Reseal(ctx context.Context, sealed []string) (authapi.ResealResponse, error)
}

// Resealed counts the token records that Reseal has read.
type Resealed struct {
	Assets  int // all records that were read
	Anew    int // records that an old secret had sealed, and that are now sealed with the current one
	Foreign int // records that no secret of the auth service can open; they stay unchanged
}

// Reseal seals the token records of all assets with the current secret. It may be repeated. If it fails, it also
// returns the counts up to the failure.
func Reseal(ctx context.Context, store SealedStore, resealer Resealer) (found Resealed, err error) {
	for after := ""; ; {
		page, err := store.SealedAfter(ctx, after, authapi.MaxReseal)
		if err != nil {
			return found, fmt.Errorf("read token records: %w", err)
		}
		if len(page) == 0 {
			return found, nil
		}
		sealed := make([]string, len(page))
		for i, s := range page {
			sealed[i] = s.Sealed
		}
		answer, err := resealer.Reseal(ctx, sealed)
		if err != nil {
			return found, err
		}
		for i, old := range page {
			if answer.Sealed[i] == "" {
				continue
			}
			if err := store.Reseal(ctx, old, Sealed{old.ID, answer.Sealed[i]}); err != nil {
				return found, fmt.Errorf("store token record of asset %s: %w", old.ID, err)
			}
			found.Anew++
		}
		found.Assets += len(page)
		found.Foreign += answer.Foreign
		after = page[len(page)-1].ID
	}
}
