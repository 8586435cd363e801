package token

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/sleep"
)

// Transfer lets a broker take an asset over. Its tokens become the asset's when it
// is used. It holds only their hashes.
type Transfer struct {
	ID           string
	Broker       string // creates the transfer, and will own the asset
	OwnerHash    string // authapi.Hash of the owner token
	TransferHash string // authapi.Hash of the transfer token
	Date         int64  // when it was created or claimed, µs since the Unix epoch
	AssetID      string // asset that claimed it; "": none
	Expires      int64  // µs since the Unix epoch; 0: never, as for a claimed transfer
}

// Expired reports whether the transfer expired unclaimed.
func (t Transfer) Expired(now time.Time) bool {
	return t.AssetID == "" && t.Expires != 0 && t.Expires <= now.UnixMicro()
}

// CreateTransfer creates a transfer for a broker. Only this response has its tokens.
func (s *Service) CreateTransfer(
	ctx context.Context, broker string, now time.Time,
) (authapi.CreateTransferResponse, error) {
	owner, transfer := newToken(), newToken()
	t := Transfer{
		ID: newToken(), Broker: broker, OwnerHash: authapi.Hash(owner), TransferHash: authapi.Hash(transfer),
		Date: now.UnixMicro(), Expires: now.Add(s.lifetime).UnixMicro(),
	}
	if err := s.store.CreateTransfer(ctx, t); err != nil {
		return authapi.CreateTransferResponse{}, fmt.Errorf("create transfer: %w", err)
	}
	return authapi.CreateTransferResponse{TransferResponse: t.shown(), Token: owner, Transfer: transfer}, nil
}

// Transfer returns the public fields of a transfer, or a fault of kind NotFound.
func (s *Service) Transfer(ctx context.Context, id string, now time.Time) (authapi.TransferResponse, error) {
	t, err := s.transfer(ctx, id, now)
	if err != nil {
		return authapi.TransferResponse{}, missing(err)
	}
	return t.shown(), nil
}

// transfer returns a transfer. An expired one is ErrNotFound.
func (s *Service) transfer(ctx context.Context, id string, now time.Time) (Transfer, error) {
	t, err := s.store.LoadTransfer(ctx, id)
	if err == nil && t.Expired(now) {
		return Transfer{}, ErrNotFound
	}
	return t, err
}

// sweepPause is the time between two steps of a sweep, for other users of the store.
const sweepPause = 10 * time.Millisecond

// Sweep removes expired transfers, in steps.
func (s *Service) Sweep(ctx context.Context, now time.Time) error {
	for cursor := ""; ; {
		next, err := s.store.SweepTransfers(ctx, cursor, now)
		if err != nil {
			return fmt.Errorf("sweep transfers: %w", err)
		}
		if next == "" {
			return nil
		}
		cursor = next
		if !sleep.For(ctx, sweepPause) {
			return fmt.Errorf("sweep transfers: %w", ctx.Err())
		}
	}
}

func (t Transfer) shown() authapi.TransferResponse {
	return authapi.TransferResponse{ID: t.ID, Date: t.Date, AssetID: t.AssetID}
}

// ChangeOwner claims a transfer for an asset and returns the asset's next record. The
// caller must have the asset's transfer token.
//
// The store does not get the next record yet. The record takes effect with the
// asset's own atomic write, which the asset's revision guards. So one of two
// concurrent callers wins, and the old tokens end with the same write. After a
// failure between the claim and that write, the caller repeats the call and gets the
// same record. For the faults see docs/contract.md, "Ownership".
func (s *Service) ChangeOwner(
	ctx context.Context, r authapi.ChangeOwnerRequest, now time.Time,
) (authapi.ChangeOwnerResponse, error) {
	current, err := s.newest(ctx, r.Sealed, r.AssetID)
	if err != nil {
		return authapi.ChangeOwnerResponse{}, err
	}
	if current.From == r.TransferID && current.Broker == r.Broker && equal(current.Former, r.TransferHash) {
		return s.owned(current, r.Sealed) // an earlier call did this
	}
	invalid := fault.New(fault.Forbidden, fault.Body, "transfer", "Invalid transfer")
	if !equal(current.TransferHash, r.TransferHash) {
		return authapi.ChangeOwnerResponse{}, invalid
	}
	t, err := s.transfer(ctx, r.TransferID, now)
	if err != nil {
		return authapi.ChangeOwnerResponse{}, missing(err)
	}
	if t.Broker != r.Broker { // only the creator of a transfer may use it
		return authapi.ChangeOwnerResponse{}, invalid
	}
	if t, err = s.store.ClaimTransfer(ctx, r.TransferID, r.AssetID, now.UnixMicro()); err != nil {
		return authapi.ChangeOwnerResponse{}, missing(err)
	}
	if t.AssetID != r.AssetID {
		return authapi.ChangeOwnerResponse{}, fault.New(fault.Forbidden, fault.Body, "transfer", "Transfer already used")
	}
	return s.owned(Record{
		AssetID:      r.AssetID,
		Broker:       t.Broker,
		OwnerHash:    t.OwnerHash,
		TransferHash: t.TransferHash,
		Generation:   current.Generation + 1,
		From:         t.ID,
		Former:       current.TransferHash,
	}, r.Sealed)
}

// owned returns the response with the next record of an asset, which has the sealed
// record before.
func (s *Service) owned(r Record, before string) (authapi.ChangeOwnerResponse, error) {
	sealed, err := s.sealer.Seal(r)
	resealed := sealed != before && s.holds(before, r)
	return authapi.ChangeOwnerResponse{Owner: r.Broker, Sealed: sealed, Resealed: resealed}, err
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// missing returns a fault of kind NotFound for ErrNotFound.
func missing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(fault.NotFound, fault.URL, "transfer_id", "Not Found")
	}
	return fmt.Errorf("load transfer: %w", err)
}
