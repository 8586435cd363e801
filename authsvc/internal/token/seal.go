package token

import (
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"

	"asset-registry/shared/keyring"
)

// ErrForged is returned for a sealed record that this registry did not seal, or
// not for the asset in question.
var ErrForged = errors.New("this is no token record of the asset")

// Sealer seals records with the current secret, so that whoever keeps one can
// neither change nor make one, and opens what any of the secrets has sealed. It
// is safe for concurrent use.
type Sealer struct {
	current []byte
	all     jwt.VerificationKeySet
	parser  *jwt.Parser
}

// audience keeps anything else that may be signed from passing for a record.
const audience = "asset-registry token record"

// NewSealer returns a sealer whose keys are derived from the registry's secrets,
// so that a sealed record is never a signed identity.
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

// claims is the wire form of a Record.
type claims struct {
	jwt.RegisteredClaims
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Generation   int64  `json:"gen"`
	From         string `json:"from,omitempty"`
	Former       string `json:"former,omitempty"`
}

// Seal returns r in sealed form.
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
	if err != nil {
		return "", fmt.Errorf("seal tokens of asset %s: %w", r.AssetID, err)
	}
	return sealed, nil
}

// Unseal returns what Seal was given, or ErrForged.
func (s *Sealer) Unseal(sealed string) (Record, error) {
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
