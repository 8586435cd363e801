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

// Transfer lets a broker take over an asset. It has the hashes of two tokens, which become the asset's tokens
// when the transfer is used.
type Transfer struct {
	ID           string
	Broker       string // the broker who creates the transfer, and will own the asset
	OwnerHash    string // authapi.Hash of the owner token
	TransferHash string // authapi.Hash of the transfer token
	Date         int64  // when the transfer was created or used, µs since the Unix epoch
	AssetID      string // the asset that has used the transfer; "": none
	Expires      int64  // when the transfer expires, µs since the Unix epoch; 0: never, because it was used
	Claim        Claim  // the claim of an asset that may use the transfer now; zero: nobody has claimed it
}

// Claim reserves a transfer for an asset until the asset has changed its owner.
type Claim struct {
	AssetID    string `json:"asset"`
	Generation int64  `json:"generation"` // generation of the asset's record after the transfer
	Date       int64  `json:"date"`       // time of the newest request with this claim, µs since the Unix epoch
	Expires    int64  `json:"expires"`    // when the transfer expires if the claim is not settled, µs
}

// Claimed returns the transfer with the claim c. It returns t unchanged if t was used, or has a claim of
// another asset or of a newer generation.
func (t Transfer) Claimed(c Claim) Transfer {
	held := t.Claim
	if t.AssetID == "" && (held.AssetID == "" || held.AssetID == c.AssetID && held.Generation <= c.Generation) {
		t.Claim = c
	}
	return t
}

// Settled returns the transfer without the claim c. If used is true, the asset of c has used the transfer. Otherwise
// the transfer is free again. Settled returns t unchanged if c is not its claim.
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

// clockError is the largest error of a clock that has no consequence. The error may be a difference between the clocks
// of two services, or a step when somebody sets a clock.
const clockError = time.Hour

// Expired reports whether the transfer has expired unused. It may then be removed.
func (t Transfer) Expired(now time.Time) bool {
	ends := t.Ends()
	return ends != 0 && ends <= now.UnixMicro()
}

// isOver reports whether the transfer has ended: it has expired, or its date is in the future. A wrong clock
// makes a date in the future, and the transfer would then expire too late.
func (t Transfer) isOver(now time.Time) bool {
	begun := t.Date
	if t.Claim.AssetID != "" {
		begun = t.Claim.Date
	}
	return t.Expired(now) || t.Ends() != 0 && begun > now.Add(clockError).UnixMicro()
}

// Ends returns when the transfer expires, in µs since the Unix epoch; 0: never. A claimed transfer expires
// later than one that nobody has claimed.
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

// CreateTransfer creates a transfer for a broker. Only the response to this call has the transfer's tokens.
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

// Transfer returns the public fields of a transfer, or a fault of kind NotFound. If the request has the sealed
// record of the asset that claims the transfer, Transfer first settles the claim.
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

// claimTime is the time for which an asset keeps a claim if its owner does not change. It is longer than the maximum
// time of a write in the asset service.
const claimTime = time.Minute

// settle ends the claim that an asset has on a transfer, once the outcome of the claim is known. The outcome is
// known if the asset has used this transfer or another one, or if the request with the claim is over. The
// argument `current` is the record of the asset.
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

// transfer returns a transfer. If the transfer is over, it returns ErrNotFound.
func (s *Service) transfer(ctx context.Context, id string, now time.Time) (Transfer, error) {
	t, err := s.store.LoadTransfer(ctx, id)
	if err == nil && t.isOver(now) {
		return Transfer{}, ErrNotFound
	}
	return t, err
}

// sweepPause is the pause between two steps of a sweep, in which others can use the store.
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
// The store does not get the next record yet. The record takes effect when the asset service stores it with the
// asset, in one atomic write that fails if the asset has changed. So only one of two concurrent callers
// succeeds. The same write ends the old tokens. If a failure comes between the claim and this write, the caller
// repeats the call and gets the same record. A later call brings the record that the asset has after the write.
// This later call settles the claim: the transfer was used, or it becomes free again. For the faults see
// docs/contract.md, "Ownership".
func (s *Service) ChangeOwner(
	ctx context.Context, r authapi.ChangeOwnerRequest, now time.Time,
) (authapi.ChangeOwnerResponse, error) {
	current, err := s.newest(ctx, r.Sealed, r.AssetID)
	if err != nil {
		return authapi.ChangeOwnerResponse{}, err
	}
	if current.From == r.TransferID && current.Broker == r.Broker && equal(current.Former, r.TransferHash) {
		return s.owned(current, r.Sealed) // an earlier call has changed the owner already
	}
	invalid := fault.New(fault.Forbidden, fault.Body, "transfer", "Invalid transfer")
	if !equal(current.TransferHash, r.TransferHash) { // if the asset has used another transfer, the claim ends here
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

// owned returns the response with the next record of an asset. The argument `before` is the sealed record that the
// asset has now.
func (s *Service) owned(r Record, before string) (authapi.ChangeOwnerResponse, error) {
	sealed, err := s.sealer.Seal(r)
	resealed := sealed != before && s.holds(before, r)
	return authapi.ChangeOwnerResponse{Owner: r.Broker, Sealed: sealed, Resealed: resealed}, err
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// missing replaces ErrNotFound by a fault of kind NotFound. It returns any other error unchanged.
func missing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(fault.NotFound, fault.URL, "transfer_id", "Not Found")
	}
	return fmt.Errorf("load transfer: %w", err)
}
