// Package token issues and verifies the tokens of assets.
//
// A record says, in hashes, which tokens an asset has and whose it is. It lives
// in two places. Sealed, so that nobody else can make one, it is stored with
// the asset in the asset's own atomic write; and here, in a Store, is the
// working copy. The newer generation of the two is right: a lost or outdated
// working copy is restored from the sealed one, and an outdated sealed one is
// told to the caller. A new asset's record is not stored here at all until it
// is first asked for, so that creating an asset takes one durable write and
// goes on when the Store is down.
package token

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"asset-registry/shared/authapi"
)

// Record is what is kept of an asset's tokens. It holds no token.
type Record struct {
	AssetID      string
	Broker       string // owner of the asset
	OwnerHash    string // authapi.Hash of the owner token
	TransferHash string // authapi.Hash of the transfer token
	Generation   int64  // 1 for a new asset, one more with each change of ownership
	From         string // id of the transfer that it came of; "" for a new asset
	Former       string // TransferHash of the record before, which that transfer was used with
}

// ErrNotFound is returned by a Store for an asset that it has no record of, or
// a transfer that it does not have.
var ErrNotFound = errors.New("no tokens are known of this")

// Store keeps records and transfers. It is safe for concurrent use. Any error but
// ErrNotFound means that it could not answer.
type Store interface {
	// Load returns an asset's record, or ErrNotFound.
	Load(ctx context.Context, assetID string) (Record, error)
	// Save stores r durably unless it has a record of the same or a newer
	// generation. It returns the one that stands afterwards.
	Save(ctx context.Context, r Record) (Record, error)
	// CreateTransfer stores a new transfer durably.
	CreateTransfer(ctx context.Context, t Transfer) error
	// LoadTransfer returns a transfer, or ErrNotFound. It may find expired ones.
	LoadTransfer(ctx context.Context, id string) (Transfer, error)
	// ClaimTransfer durably sets a transfer's asset and date, unless it has an
	// asset. It returns the transfer as it stands afterwards, or ErrNotFound. A
	// claimed transfer does not expire.
	ClaimTransfer(ctx context.Context, id, assetID string, date int64) (Transfer, error)
	// SweepTransfers looks at a bounded number of transfers that follow a cursor, ""
	// for the first ones. It removes those that have expired, and durably sets the
	// end of unclaimed ones that have none. It returns the cursor for the next ones,
	// "" if there are none.
	SweepTransfers(ctx context.Context, cursor string, now, end time.Time) (next string, err error)
	// Ready returns nil when the store can take a write now.
	Ready(ctx context.Context) error
	// Close waits for writes under way and frees what the store holds.
	Close() error
}

// Service issues and verifies tokens. It is safe for concurrent use.
type Service struct {
	store    Store
	sealer   *Sealer
	lifetime time.Duration // of an unclaimed transfer
}

// NewService returns a service over store, whose transfers expire after a
// lifetime if nobody claims them.
func NewService(store Store, sealer *Sealer, lifetime time.Duration) *Service {
	return &Service{store, sealer, lifetime}
}

// Issue returns the tokens of a new asset: 32 random hex characters each.
func (s *Service) Issue(assetID, broker string) (authapi.IssueTokensResponse, error) {
	return s.issue(assetID, broker, mint(), mint())
}

// IssueAgain returns tokens of a new asset that look as random, and are the same
// for the same asset and seed. They are as secret as the seed.
func (s *Service) IssueAgain(assetID, broker string, seed []byte) (authapi.IssueTokensResponse, error) {
	both, err := hkdf.Key(sha256.New, seed, nil, "asset-registry tokens of "+assetID, 2*tokenSize)
	if err != nil {
		return authapi.IssueTokensResponse{}, fmt.Errorf("derive tokens: %w", err)
	}
	return s.issue(assetID, broker, hex.EncodeToString(both[:tokenSize]), hex.EncodeToString(both[tokenSize:]))
}

func (s *Service) issue(assetID, broker, owner, transfer string) (authapi.IssueTokensResponse, error) {
	sealed, err := s.sealer.Seal(Record{
		AssetID:      assetID,
		Broker:       broker,
		OwnerHash:    authapi.Hash(owner),
		TransferHash: authapi.Hash(transfer),
		Generation:   1,
	})
	if err != nil {
		return authapi.IssueTokensResponse{}, err
	}
	return authapi.IssueTokensResponse{Token: owner, Transfer: transfer, Sealed: sealed}, nil
}

// Verify tells whether a token is the owner token of an asset and its bearer
// the asset's owner. It returns ErrForged for a sealed record that is not one
// of this asset.
func (s *Service) Verify(ctx context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	current, err := s.newest(ctx, r.Sealed, r.AssetID)
	if err != nil {
		return authapi.VerifyTokenResponse{}, err
	}
	answer := authapi.VerifyTokenResponse{Valid: equal(current.OwnerHash, r.TokenHash) && current.Broker == r.Broker}
	if answer.Sealed, err = s.sealer.Seal(current); err != nil {
		return authapi.VerifyTokenResponse{}, err
	}
	if answer.Sealed == r.Sealed { // under a secret, a record has one sealed form
		answer.Sealed = ""
		return answer, nil
	}
	answer.Owner, answer.Resealed = current.Broker, s.says(r.Sealed, current)
	return answer, nil
}

// says tells whether a sealed text says just what a record does, so that only
// the secret differs that it is sealed with.
func (s *Service) says(sealed string, r Record) bool {
	said, err := s.sealer.Unseal(sealed)
	return err == nil && said == r
}

// Reseal returns sealed records under the current secret, "" for one that is so
// already or that no secret of ours has sealed: of those it also returns how many
// there are.
func (s *Service) Reseal(sealed []string) (anew []string, foreign int, err error) {
	anew = make([]string, len(sealed))
	for i, text := range sealed {
		r, err := s.sealer.Unseal(text)
		if err != nil {
			foreign++
			continue
		}
		again, err := s.sealer.Seal(r)
		if err != nil {
			return nil, 0, err
		}
		if again != text {
			anew[i] = again
		}
	}
	return anew, foreign, nil
}

// newest returns the newer of the sealed record of an asset and the stored one,
// and restores the stored one if it is lost or older.
func (s *Service) newest(ctx context.Context, text, assetID string) (Record, error) {
	sealed, err := s.sealer.Unseal(text)
	if err != nil {
		return Record{}, err
	}
	if sealed.AssetID != assetID {
		return Record{}, fmt.Errorf("record of asset %s presented for %s: %w", sealed.AssetID, assetID, ErrForged)
	}
	stored, err := s.store.Load(ctx, sealed.AssetID)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Record{}, fmt.Errorf("load tokens of asset %s: %w", sealed.AssetID, err)
	}
	if err == nil && stored.Generation >= sealed.Generation {
		return stored, nil
	}
	current, err := s.store.Save(ctx, sealed)
	if err != nil {
		return Record{}, fmt.Errorf("restore tokens of asset %s: %w", sealed.AssetID, err)
	}
	return current, nil
}

// tokenSize is the length of a token, in bytes.
const tokenSize = 16

// mint returns a new token: 128 random bits.
func mint() string {
	bits := make([]byte, tokenSize)
	rand.Read(bits) // never fails
	return hex.EncodeToString(bits)
}
