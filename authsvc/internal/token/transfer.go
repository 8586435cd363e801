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
	Date         int64  // when it was created or used, µs since the Unix epoch
	AssetID      string // asset that has used it; "": none
	Expires      int64  // µs since the Unix epoch; 0: never, as for a used transfer
	Claim        Claim  // of an asset that may use it now; the zero value: none
}

// Claim reserves a transfer for an asset, until the asset has changed hands.
type Claim struct {
	AssetID    string `json:"asset"`
	Generation int64  `json:"generation"` // of the asset's record that the transfer leads to
	Date       int64  `json:"date"`       // of the newest request, µs since the Unix epoch
	Expires    int64  `json:"expires"`    // of the transfer, if the claim is not settled; µs since the Unix epoch
}

// Claimed returns the transfer with a claim. The claim has no effect on a used transfer, and
// none on a claim of another asset or of a newer generation.
func (t Transfer) Claimed(c Claim) Transfer {
	held := t.Claim
	if t.AssetID == "" && (held.AssetID == "" || held.AssetID == c.AssetID && held.Generation <= c.Generation) {
		t.Claim = c
	}
	return t
}

// Settled returns the transfer without a claim: used by the claim's asset, or free again. It
// has no effect if the transfer has another claim.
func (t Transfer) Settled(c Claim, used bool) Transfer {
	if t.Claim != c {
		return t
	}
	t.Claim = Claim{}
	if used {
		t.AssetID, t.Date, t.Expires = c.AssetID, c.Date, 0
	}
	return t
}

// clockError is the most by which the clocks of two services, or one clock before and after it was
// set, differ without a consequence.
const clockError = time.Hour

// Expired reports whether the transfer expired unused. It then may be removed.
func (t Transfer) Expired(now time.Time) bool {
	ends := t.Ends()
	return ends != 0 && ends <= now.UnixMicro()
}

// isOver reports whether nobody may use the transfer now: it has expired, or it comes from the
// future. Then a clock was wrong, and nothing would end it in time.
func (t Transfer) isOver(now time.Time) bool {
	begun := t.Date
	if t.Claim.AssetID != "" {
		begun = t.Claim.Date
	}
	return t.Expired(now) || t.Ends() != 0 && begun > now.Add(clockError).UnixMicro()
}

// Ends returns when the transfer expires, in µs since the Unix epoch; 0: never. A claim
// delays it.
func (t Transfer) Ends() int64 {
	switch {
	case t.AssetID != "":
		return 0
	case t.Claim.AssetID != "":
		return t.Claim.Expires
	default:
		return t.Expires
	}
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

// Transfer returns the public fields of a transfer, or a fault of kind NotFound. With the
// sealed record of the asset that claims the transfer, it settles the claim first.
func (s *Service) Transfer(
	ctx context.Context, r authapi.ReadTransferRequest, now time.Time,
) (authapi.TransferResponse, error) {
	t, err := s.transfer(ctx, r.ID, now)
	if err != nil {
		return authapi.TransferResponse{}, missing(err)
	}
	if r.Sealed != "" && t.Claim.AssetID != "" {
		current, err := s.newest(ctx, r.Sealed, t.Claim.AssetID)
		if err == nil {
			t, err = s.settle(ctx, r.ID, current, now)
		}
		if err != nil {
			return authapi.TransferResponse{}, missing(err)
		}
	}
	return t.shown(), nil
}

// claimTime is how long a claim holds that leads to no change of the asset. It is longer
// than a write of the asset service may take.
const claimTime = time.Minute

// settle ends the claim of a transfer for the asset of current, if its outcome is known:
// the asset has used the transfer, it has used another one, or the request has ended.
func (s *Service) settle(ctx context.Context, id string, current Record, now time.Time) (Transfer, error) {
	t, err := s.store.LoadTransfer(ctx, id)
	if err != nil || t.Claim.AssetID != current.AssetID || current.AssetID == "" {
		return t, err
	}
	used := current.From == id
	since := time.Duration(now.UnixMicro()-t.Claim.Date) * time.Microsecond
	if !used && current.Generation < t.Claim.Generation && since < claimTime && since > -clockError {
		return t, nil
	}
	return s.store.SettleTransfer(ctx, id, t.Claim, used)
}

// transfer returns a transfer. One that is over is ErrNotFound.
func (s *Service) transfer(ctx context.Context, id string, now time.Time) (Transfer, error) {
	t, err := s.store.LoadTransfer(ctx, id)
	if err == nil && t.isOver(now) {
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
	return authapi.TransferResponse{ID: t.ID, Date: t.Date, AssetID: t.AssetID, Claimed: t.Claim.AssetID}
}

// ChangeOwner claims a transfer for an asset and returns the asset's next record. The
// caller must have the asset's transfer token.
//
// The store does not get the next record yet. The record takes effect with the
// asset's own atomic write, which the asset's revision guards. So one of two
// concurrent callers wins, and the old tokens end with the same write. After a
// failure between the claim and that write, the caller repeats the call and gets the
// same record. A call with the record that the asset then has settles the claim, for
// the winner and for the others. For the faults see docs/contract.md, "Ownership".
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
	if !equal(current.TransferHash, r.TransferHash) { // another transfer may have won
		if _, err := s.settle(ctx, r.TransferID, current, now); err != nil && !errors.Is(err, ErrNotFound) {
			return authapi.ChangeOwnerResponse{}, fmt.Errorf("settle transfer: %w", err)
		}
		return authapi.ChangeOwnerResponse{}, invalid
	}
	t, err := s.transfer(ctx, r.TransferID, now)
	if err != nil {
		return authapi.ChangeOwnerResponse{}, missing(err)
	}
	if t.Broker != r.Broker { // only the creator of a transfer may use it
		return authapi.ChangeOwnerResponse{}, invalid
	}
	claim := Claim{r.AssetID, current.Generation + 1, now.UnixMicro(), now.Add(s.lifetime).UnixMicro()}
	if t, err = s.store.ClaimTransfer(ctx, r.TransferID, claim); err != nil {
		return authapi.ChangeOwnerResponse{}, missing(err)
	}
	if t.AssetID != r.AssetID && t.Claim.AssetID != r.AssetID {
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
