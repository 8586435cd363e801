// Package identity says who is calling, and carries it between the services
// so that none of them can be told a lie: the gateway signs what it learnt
// from the API key, and a service accepts no request that is not signed.
package identity

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"asset-registry/shared/keyring"
)

// Header carries the signed identity between services. The edge strips it
// from what comes from outside.
const Header = "X-Registry-Identity"

// Role is what an API key lets its holder be.
type Role string

// The roles of contract section 2.1 that a key can have, and the one that our
// own services use among themselves.
const (
	Anonymous     Role = ""
	Broker        Role = "broker"
	Concierge     Role = "concierge"
	Administrator Role = "administrator"
	Service       Role = "service"
)

// Identity is who is calling. The zero value is the anonymous public.
type Identity struct {
	Broker string // name of the tenant that the key belongs to; the owner of what it creates
	KeyID  string // names the key without giving it away
	Role   Role
	Levels string // accreditation levels, one character each (contract section 6)
}

// IsAnonymous tells whether nobody has identified themselves.
func (i Identity) IsAnonymous() bool { return i.Role == Anonymous }

// Permits tells whether the key has an accreditation level. Level 0 stands
// for all of them, save 't', which restricts rather than permits.
func (i Identity) Permits(level byte) bool {
	return strings.IndexByte(i.Levels, level) >= 0 || strings.IndexByte(i.Levels, '0') >= 0
}

// TestOnly tells whether the key may work on test assets only (level t).
func (i Identity) TestOnly() bool { return strings.Contains(i.Levels, "t") }

// lifetime is how long a signed identity is good for: longer than any request
// may take, plus the difference of two machines' clocks.
const lifetime = 2 * time.Minute

// MinSecret is the least length of a signing secret, in bytes.
const MinSecret = keyring.MinLength

// ErrUnsigned is returned for an identity that is missing, expired, malformed
// or signed with another secret.
var ErrUnsigned = errors.New("identity is not signed by a service of this registry")

// Signer signs identities with the current secret, and verifies them with any.
// It is safe for concurrent use.
type Signer struct {
	current []byte
	all     jwt.VerificationKeySet
	now     func() time.Time
	parser  *jwt.Parser

	// Signing and verifying cost more than all else on the way of a read, and
	// the same few identities come again and again.
	signed   memo[Identity, string]
	verified memo[string, Identity]
}

// NewSigner returns a signer over the secrets that all services of one registry
// share. It fails on a secret that is too short.
func NewSigner(secrets keyring.Ring, now func() time.Time) (*Signer, error) {
	if err := secrets.Check(); err != nil {
		return nil, fmt.Errorf("sign identities: %w", err)
	}
	var all jwt.VerificationKeySet
	for _, s := range secrets {
		all.Keys = append(all.Keys, s)
	}
	return &Signer{
		current: secrets.Current(),
		all:     all,
		now:     now,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithExpirationRequired(),
			jwt.WithTimeFunc(now),
		),
	}, nil
}

// claims is the wire form of an Identity.
type claims struct {
	jwt.RegisteredClaims
	KeyID  string `json:"kid,omitempty"`
	Role   Role   `json:"role,omitempty"`
	Levels string `json:"lvl,omitempty"`
}

// reuse is how long a signed identity is given out again: a part of its
// lifetime only, so that enough of that is left.
const reuse = lifetime / 4

// Sign returns i as a signed token that is good for a minute and a half at least.
func (s *Signer) Sign(i Identity) (string, error) {
	now := s.now()
	if signed, known := s.signed.get(i, now); known {
		return signed, nil
	}
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   i.Broker,
			ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)),
		},
		KeyID:  i.KeyID,
		Role:   i.Role,
		Levels: i.Levels,
	})
	signed, err := token.SignedString(s.current)
	if err != nil {
		return "", fmt.Errorf("sign identity: %w", err)
	}
	s.signed.put(i, signed, now.Add(reuse))
	return signed, nil
}

// Verify returns the identity that Sign was given, or ErrUnsigned.
func (s *Signer) Verify(signed string) (Identity, error) {
	if i, known := s.verified.get(signed, s.now()); known {
		return i, nil
	}
	var c claims
	_, err := s.parser.ParseWithClaims(signed, &c, func(*jwt.Token) (any, error) { return s.all, nil })
	if err != nil {
		return Identity{}, ErrUnsigned
	}
	i := Identity{Broker: c.Subject, KeyID: c.KeyID, Role: c.Role, Levels: c.Levels}
	s.verified.put(signed, i, c.ExpiresAt.Time)
	return i, nil
}
