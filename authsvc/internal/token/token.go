// Package token issues and verifies the tokens of assets (docs/architecture.md,
// "Tokens and keys").
//
// A record holds the hashes of an asset's tokens and the asset's owner. There are two copies of it. The asset
// service stores the sealed copy with the asset, in the same atomic write; only the auth service can make a
// sealed copy. The Store has the working copy. The copy with the newer generation is right. The service
// restores a lost or outdated working copy from the sealed one, and returns a newer record to a caller with an
// outdated sealed copy. The Store gets the record of a new asset only when a token of the asset is first verified.
// The creation of an asset therefore needs one durable write, and works while the Store is down.
package token

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/keyring"
)

// Record holds the hashes of an asset's tokens, but not the tokens.
type Record struct {
	AssetID      string
	Broker       string // owner of the asset
	OwnerHash    string // authapi.Hash of the owner token
	TransferHash string // authapi.Hash of the transfer token
	Generation   int64  // 1 for a new asset, one more with each change of ownership and each recovery
	From         string // id of the transfer that led to this record; "" for a new asset and after a recovery
	Former       string // TransferHash of the record before the transfer in From; "" if there was no transfer
}

// ErrNotFound is the error of a Store that does not have a record or a transfer.
var ErrNotFound = errors.New("there is no such token record or transfer")

// Store keeps records and transfers. It is safe for concurrent use. Any error other
// than ErrNotFound means that the store could not answer.
type Store interface {
	// Load returns the record of an asset, or ErrNotFound.
	Load(ctx context.Context, assetID string) (Record, error)
	// Save durably stores r unless the store has a record of the same or a newer
	// generation. It returns the record that the store then has.
	Save(ctx context.Context, r Record) (Record, error)
	// CreateTransfer durably stores a new transfer.
	CreateTransfer(ctx context.Context, t Transfer) error
	// LoadTransfer returns a transfer, or ErrNotFound. It may return an expired one.
	LoadTransfer(ctx context.Context, id string) (Transfer, error)
	// ClaimTransfer durably stores the result of Transfer.Claimed. It returns the transfer that the store then
	// has, or ErrNotFound.
	ClaimTransfer(ctx context.Context, id string, c Claim) (Transfer, error)
	// SettleTransfer durably stores the result of Transfer.Settled. It returns the transfer that the store then
	// has, or ErrNotFound.
	SettleTransfer(ctx context.Context, id string, c Claim, used bool) (Transfer, error)
	// SweepTransfers reads a bounded number of transfers after a cursor, and removes the expired ones. The
	// cursor is "" in the first call. SweepTransfers returns the cursor of the next call; "" if there are no
	// more transfers.
	SweepTransfers(ctx context.Context, cursor string, now time.Time) (next string, err error)
}

// Service issues and verifies tokens. It is safe for concurrent use.
type Service struct {
	store    Store
	sealer   *Sealer
	lifetime time.Duration // how long an unclaimed transfer lasts
}

// NewService returns a service on a store. A transfer that nobody has claimed expires after lifetime.
func NewService(store Store, sealer *Sealer, lifetime time.Duration) *Service {
	return &Service{store, sealer, lifetime}
}

// Issue returns the tokens of a new asset: 32 random hex characters each. It does
// not use the store.
func (s *Service) Issue(assetID, broker string) (authapi.IssueTokensResponse, error) {
	return s.issue(assetID, broker, newToken(), newToken(), 1)
}

// IssueAgain returns the tokens of a new asset, derived from a seed. The same asset
// and seed give the same tokens. They are as secret as the seed.
func (s *Service) IssueAgain(assetID, broker string, seed []byte) (authapi.IssueTokensResponse, error) {
	both, err := hkdf.Key(sha256.New, seed, nil, "asset-registry tokens of "+assetID, 2*tokenSize)
	if err != nil {
		return authapi.IssueTokensResponse{}, fmt.Errorf("derive tokens: %w", err)
	}
	owner, transfer := hex.EncodeToString(both[:tokenSize]), hex.EncodeToString(both[tokenSize:])
	return s.issue(assetID, broker, owner, transfer, 1)
}

// issue returns the tokens of an asset, and a sealed record that did not come from a transfer.
func (s *Service) issue(
	assetID, broker, owner, transfer string, generation int64,
) (authapi.IssueTokensResponse, error) {
	sealed, err := s.sealer.Seal(Record{
		AssetID:      assetID,
		Broker:       broker,
		OwnerHash:    authapi.Hash(owner),
		TransferHash: authapi.Hash(transfer),
		Generation:   generation,
	})
	if err != nil {
		return authapi.IssueTokensResponse{}, err
	}
	return authapi.IssueTokensResponse{Token: owner, Transfer: transfer, Sealed: sealed}, nil
}

// Verify reports whether a token is the owner token of an asset, and whether the bearer's broker is the asset's
// owner. It returns ErrForged if the sealed record is not the asset's.
func (s *Service) Verify(ctx context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	current, err := s.newest(ctx, r.Sealed, r.AssetID)
	if err != nil {
		return authapi.VerifyTokenResponse{}, err
	}
	answer := authapi.VerifyTokenResponse{Valid: equal(current.OwnerHash, r.TokenHash) && current.Broker == r.Broker}
	if answer.Sealed, err = s.sealer.Seal(current); err != nil {
		return authapi.VerifyTokenResponse{}, err
	}
	if answer.Sealed == r.Sealed { // with the same secret, a record always has the same sealed form
		answer.Sealed = ""
		return answer, nil
	}
	answer.Owner, answer.Resealed = current.Broker, s.holds(r.Sealed, current)
	return answer, nil
}

// Recover returns new random tokens of an asset for its owner, and the asset's next record. The record takes
// effect when the asset service stores it with the asset, as after ChangeOwner. Recover returns ErrForged if
// the sealed record is not the asset's.
func (s *Service) Recover(ctx context.Context, assetID, sealed string) (authapi.RecoverTokensResponse, error) {
	current, err := s.newest(ctx, sealed, assetID)
	if err != nil {
		return authapi.RecoverTokensResponse{}, err
	}
	issued, err := s.issue(assetID, current.Broker, newToken(), newToken(), current.Generation+1)
	return authapi.RecoverTokensResponse{IssueTokensResponse: issued, Owner: current.Broker}, err
}

// holds reports whether a sealed text holds exactly this record. The text may be sealed with a former secret.
func (s *Service) holds(sealed string, r Record) bool {
	held, err := s.sealer.Unseal(sealed)
	return err == nil && held == r
}

// Reseal seals records with the current secret. An element of the result is "" if the current secret has already
// sealed the record. It is also "" if no secret of the registry has sealed the record; the result `foreign` is the
// number of these records.
func (s *Service) Reseal(sealed []string) (resealed []string, foreign int, err error) {
	resealed = make([]string, len(sealed))
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
			resealed[i] = again
		}
	}
	return resealed, foreign, nil
}

// newest returns the sealed or the stored record of an asset, whichever is newer. If the store has no record or
// an older one, newest stores the sealed record, and settles the transfer that led to it.
func (s *Service) newest(ctx context.Context, text, assetID string) (Record, error) {
	sealed, err := s.sealer.Unseal(text)
	if err != nil {
		return Record{}, err
	}
	if sealed.AssetID != assetID {
		return Record{}, fmt.Errorf("token record of asset %s sent for asset %s: %w", sealed.AssetID, assetID, ErrForged)
	}
	stored, err := s.store.Load(ctx, sealed.AssetID)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Record{}, fmt.Errorf("load tokens of asset %s: %w", sealed.AssetID, err)
	}
	if err == nil && stored.Generation >= sealed.Generation {
		return stored, nil
	}
	// This comes before Save: otherwise a failure between the two would leave the transfer unsettled.
	if sealed.From != "" {
		if _, err := s.settle(ctx, sealed.From, sealed, time.Time{}); err != nil && !errors.Is(err, ErrNotFound) {
			return Record{}, fmt.Errorf("settle transfer of asset %s: %w", sealed.AssetID, err)
		}
	}
	current, err := s.store.Save(ctx, sealed)
	return current, errs.In(err, "restore tokens of asset %s", sealed.AssetID)
}

// tokenSize is the length of a token, in bytes.
const tokenSize = 16

// newToken returns 128 random bits in hex.
func newToken() string {
	bits := make([]byte, tokenSize)
	rand.Read(bits) // never fails
	return hex.EncodeToString(bits)
}

// encoded is a record as stores keep it, under the asset's id.
type encoded struct {
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Generation   int64  `json:"generation"`
	From         string `json:"from,omitempty"`
	Former       string `json:"former,omitempty"`
}

// Encode returns the record as JSON for a store, without the asset's id.
func (r Record) Encode() ([]byte, error) {
	text, err := json.Marshal(encoded{r.Broker, r.OwnerHash, r.TransferHash, r.Generation, r.From, r.Former})
	return text, errs.In(err, "encode tokens of asset %s", r.AssetID)
}

// Decode decodes the record of an asset from a text that Record.Encode has made.
func Decode(assetID string, text []byte) (Record, error) {
	var e encoded
	if err := json.Unmarshal(text, &e); err != nil {
		return Record{}, fmt.Errorf("decode tokens of asset %s: %w", assetID, err)
	}
	return Record{assetID, e.Broker, e.OwnerHash, e.TransferHash, e.Generation, e.From, e.Former}, nil
}

// encodedTransfer is a transfer as stores keep it, under its id.
type encodedTransfer struct {
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Date         int64  `json:"date"`
	AssetID      string `json:"asset,omitempty"`
	Expires      int64  `json:"expires,omitempty"`
	Claim        Claim  `json:"claim,omitzero"`
}

// Encode returns the transfer as JSON for a store, without its id.
func (t Transfer) Encode() ([]byte, error) {
	e := encodedTransfer{t.Broker, t.OwnerHash, t.TransferHash, t.Date, t.AssetID, t.Expires, t.Claim}
	text, err := json.Marshal(e)
	return text, errs.In(err, "encode transfer %s", t.ID)
}

// DecodeTransfer decodes the transfer with an id from a text that Transfer.Encode has made.
func DecodeTransfer(id string, text []byte) (Transfer, error) {
	var e encodedTransfer
	if err := json.Unmarshal(text, &e); err != nil {
		return Transfer{}, fmt.Errorf("decode transfer %s: %w", id, err)
	}
	return Transfer{id, e.Broker, e.OwnerHash, e.TransferHash, e.Date, e.AssetID, e.Expires, e.Claim}, nil
}

// ErrForged is the error for a sealed record that is of another asset, or that this registry did not seal.
var ErrForged = errors.New("this is not a token record of the asset")

// Sealer seals records with the current secret, and opens records that any of the registry's secrets sealed.
// Others can keep a sealed record, but they cannot change or make one. A Sealer is safe for concurrent use.
type Sealer struct {
	current []byte
	all     jwt.VerificationKeySet
	parser  *jwt.Parser
}

// audience distinguishes sealed records from everything else that the registry signs.
const audience = "asset-registry token record"

// NewSealer returns a sealer with keys derived from the registry's secrets. These keys are used for nothing
// else, so a sealed record is never a valid signed identity. The first secret is the current one.
func NewSealer(secrets keyring.Ring) (*Sealer, error) {
	keys, err := secrets.Derive(audience)
	if err != nil {
		return nil, err
	}
	var all jwt.VerificationKeySet
	for _, k := range keys {
		all.Keys = append(all.Keys, k.Key)
	}
	return &Sealer{current: keys[0].Key, all: all, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithAudience(audience),
		jwt.WithStrictDecoding(),
	)}, nil
}

// claims is the content of a sealed Record.
type claims struct {
	jwt.RegisteredClaims
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Generation   int64  `json:"gen"`
	From         string `json:"from,omitempty"`
	Former       string `json:"former,omitempty"`
}

// Seal returns r sealed with the current secret.
func (s *Sealer) Seal(r Record) (string, error) {
	sealed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{Subject: r.AssetID, Audience: jwt.ClaimStrings{audience}},
		Broker:           r.Broker,
		OwnerHash:        r.OwnerHash,
		TransferHash:     r.TransferHash,
		Generation:       r.Generation,
		From:             r.From,
		Former:           r.Former,
	}).SignedString(s.current)
	return sealed, errs.In(err, "seal tokens of asset %s", r.AssetID)
}

// Unseal returns the record in a text that Seal has made, or ErrForged for any other text.
func (s *Sealer) Unseal(sealed string) (Record, error) {
	if strings.ContainsAny(sealed, "\r\n") { // the decoder of base64 would ignore these line ends
		return Record{}, ErrForged
	}
	var c claims
	_, err := s.parser.ParseWithClaims(sealed, &c, func(*jwt.Token) (any, error) { return s.all, nil })
	if err != nil {
		return Record{}, ErrForged
	}
	return Record{
		AssetID:      c.Subject,
		Broker:       c.Broker,
		OwnerHash:    c.OwnerHash,
		TransferHash: c.TransferHash,
		Generation:   c.Generation,
		From:         c.From,
		Former:       c.Former,
	}, nil
}
