package token

import (
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"asset-registry/shared/keyring"
)

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
	if err != nil {
		return "", fmt.Errorf("seal tokens of asset %s: %w", r.AssetID, err)
	}
	return sealed, nil
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
