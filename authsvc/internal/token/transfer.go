package token

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// Transfer is what a broker makes to take an asset over: tokens that become the
// asset's once it is used. It holds only their hashes.
type Transfer struct {
	ID           string
	Broker       string // who made it, and will own the asset
	OwnerHash    string // authapi.Hash of the owner token
	TransferHash string // authapi.Hash of the transfer token
	Date         int64  // when it was made or claimed, µs since the Unix epoch
	AssetID      string // that it is claimed for; "" for none yet
	Expires      int64  // when it ends unless it is claimed, µs since the Unix epoch; 0 for a claimed one
}

// Expired tells whether the transfer has ended unclaimed.
func (t Transfer) Expired(now time.Time) bool {
	return t.AssetID == "" && t.Expires != 0 && t.Expires <= now.UnixMicro()
}

// CreateTransfer makes a transfer. Its tokens are shown this once.
func (s *Service) CreateTransfer(ctx context.Context, broker string, now time.Time) (authapi.CreateTransferResponse, error) {
	owner, transfer := mint(), mint()
	t := Transfer{
		ID: mint(), Broker: broker, OwnerHash: authapi.Hash(owner), TransferHash: authapi.Hash(transfer),
		Date: now.UnixMicro(), Expires: now.Add(s.lifetime).UnixMicro(),
	}
	if err := s.store.CreateTransfer(ctx, t); err != nil {
		return authapi.CreateTransferResponse{}, fmt.Errorf("create transfer: %w", err)
	}
	return authapi.CreateTransferResponse{TransferResponse: t.shown(), Token: owner, Transfer: transfer}, nil
}

// Transfer returns what anybody may know of a transfer, or a fault of kind NotFound.
func (s *Service) Transfer(ctx context.Context, id string, now time.Time) (authapi.TransferResponse, error) {
	t, err := s.transfer(ctx, id, now)
	if err != nil {
		return authapi.TransferResponse{}, missing(err)
	}
	return t.shown(), nil
}

// transfer returns a transfer, or ErrNotFound also for one that has expired.
func (s *Service) transfer(ctx context.Context, id string, now time.Time) (Transfer, error) {
	t, err := s.store.LoadTransfer(ctx, id)
	if err == nil && t.Expired(now) {
		return Transfer{}, ErrNotFound
	}
	return t, err
}

// sweepPause is how long a sweep leaves the store to others between two steps.
const sweepPause = 10 * time.Millisecond

// Sweep goes through all transfers, a bounded number at a time. It removes the
// expired ones, and lets unclaimed ones of an earlier version, which have no
// end, expire a lifetime from now.
func (s *Service) Sweep(ctx context.Context, now time.Time) error {
	for cursor := ""; ; {
		next, err := s.store.SweepTransfers(ctx, cursor, now, now.Add(s.lifetime))
		if err != nil {
			return fmt.Errorf("sweep transfers: %w", err)
		}
		if next == "" {
			return nil
		}
		cursor = next
		select {
		case <-time.After(sweepPause):
		case <-ctx.Done():
			return fmt.Errorf("sweep transfers: %w", ctx.Err())
		}
	}
}

func (t Transfer) shown() authapi.TransferResponse {
	return authapi.TransferResponse{ID: t.ID, Date: t.Date, AssetID: t.AssetID}
}

// ChangeOwner claims a transfer for an asset, for a broker who presents the
// asset's transfer token, and returns the asset's next record. That is not
// stored here: it comes into force with the asset's own atomic write, which is
// guarded by the asset's revision, so that of two that race for an asset one
// wins, and its old tokens die in the same moment. Whatever happens between the
// claim and that write, the same call may be repeated, and leads to the same
// record. The faults are those of contract section 6.4.
func (s *Service) ChangeOwner(ctx context.Context, r authapi.ChangeOwnerRequest, now time.Time) (authapi.ChangeOwnerResponse, error) {
	current, err := s.newest(ctx, r.Sealed, r.AssetID)
	if err != nil {
		return authapi.ChangeOwnerResponse{}, err
	}
	if done := current.From == r.TransferID && current.Broker == r.Broker && equal(current.Former, r.TransferHash); done {
		return s.owned(current, r.Sealed)
	}
	invalid := fault.New(fault.Forbidden, fault.Body, "transfer", "Invalid transfer")
	if !equal(current.TransferHash, r.TransferHash) {
		return authapi.ChangeOwnerResponse{}, invalid
	}
	t, err := s.transfer(ctx, r.TransferID, now)
	if err != nil {
		return authapi.ChangeOwnerResponse{}, missing(err)
	}
	if t.Broker != r.Broker { // nobody else may take an asset in the name of who made it
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

// owned answers with a record that the asset with a sealed one is to have.
func (s *Service) owned(r Record, before string) (authapi.ChangeOwnerResponse, error) {
	sealed, err := s.sealer.Seal(r)
	return authapi.ChangeOwnerResponse{Owner: r.Broker, Sealed: sealed, Resealed: sealed != before && s.says(before, r)}, err
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// missing makes a fault of ErrNotFound.
func missing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(fault.NotFound, fault.URL, "transfer_id", "Not Found")
	}
	return fmt.Errorf("load transfer: %w", err)
}
