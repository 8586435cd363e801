// Package identity carries the caller's identity from service to service. The
// gateway signs the identity that belongs to the API key. Other services accept
// only signed identities, so no client can forge one.
package identity

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"asset-registry/shared/keyring"
)

// Header carries the signed identity between services. The edge removes it from
// requests of clients.
const Header = "X-Registry-Identity"

// Role is the role of an API key.
type Role string

// The roles of keys (docs/contract.md, "Roles"). Service is the role of our own
// services.
const (
	Anonymous     Role = ""
	Broker        Role = "broker"
	Concierge     Role = "concierge"
	Administrator Role = "administrator"
	Service       Role = "service"
)

// Identity identifies a caller. The zero value is an anonymous caller.
type Identity struct {
	Broker string // the tenant of the key, and the owner of the assets that it creates
	KeyID  string // identifies the key without revealing it
	Role   Role
	Levels string // one character each (docs/contract.md, "Accreditation")
}

// IsAnonymous reports whether the caller has no key.
func (i Identity) IsAnonymous() bool { return i.Role == Anonymous }

// Permits reports whether the key has an accreditation level. Level 0 includes
// all others except 't', which is a restriction.
func (i Identity) Permits(level byte) bool {
	return strings.IndexByte(i.Levels, level) >= 0 || strings.IndexByte(i.Levels, '0') >= 0
}

// TestOnly reports whether the key is limited to test assets (level t).
func (i Identity) TestOnly() bool { return strings.Contains(i.Levels, "t") }

// lifetime is the time for which a signed identity is valid. Clocks of machines in rotation differ by two minutes at
// most (docs/architecture.md, "Wrong clocks"). The rest is `reuse`, and the time of a request.
const lifetime = 3 * time.Minute

// MinSecret is the least length of a signing secret, in bytes.
const MinSecret = keyring.MinLength

// ErrUnsigned is returned for an identity that is missing, malformed, expired or
// signed with another secret.
var ErrUnsigned = errors.New("identity is not signed by a service of this registry")

// Signer signs identities with the current secret, and verifies them with every
// secret. It is safe for concurrent use.
type Signer struct {
	current []byte
	all     jwt.VerificationKeySet
	now     func() time.Time
	parser  *jwt.Parser

	// Without these caches, signing and verifying would be the largest cost of a
	// read. There are few different identities.
	signed   cache[Identity, string]
	verified cache[string, Identity]
}

// NewSigner returns a signer with the secrets that all services of one registry share. It returns an error if
// the ring has faults.
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

// claims is an Identity in a JSON Web Token. Its subject is the broker.
type claims struct {
	jwt.RegisteredClaims
	KeyID  string `json:"kid,omitempty"`
	Role   Role   `json:"role,omitempty"`
	Levels string `json:"lvl,omitempty"`
}

// reuse is the time for which Sign returns the same token again. It is much shorter than lifetime, so each token that
// Sign returns stays valid long enough.
const reuse = lifetime / 6

// Sign returns i as a signed token, which is valid for at least 150 s.
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
	s.signed.put(i, signed, now.Add(reuse).Round(0)) // by the time of day, as the token ends: the clock may be set
	return signed, nil
}

// Verify returns the identity in a token from Sign, or ErrUnsigned.
func (s *Signer) Verify(signed string) (Identity, error) {
	if i, known := s.verified.get(signed, s.now()); known {
		return i, nil
	}
	if strings.ContainsAny(signed, "\r\n") { // the decoder of base64 would ignore line ends
		return Identity{}, ErrUnsigned
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

// maxEntries is the number of entries at which a cache is emptied. There are few
// callers, and each uses one token at a time, so a cache is rarely full.
const maxEntries = 10_000

// cache holds values until they expire. The zero value is empty. It is safe for
// concurrent use.
type cache[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]entry[V]
}

type entry[V any] struct {
	value V
	until time.Time
}

func (c *cache[K, V]) get(key K, now time.Time) (value V, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, known := c.entries[key]
	return e.value, known && now.Before(e.until)
}

func (c *cache[K, V]) put(key K, value V, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxEntries {
		c.entries = map[K]entry[V]{}
	}
	c.entries[key] = entry[V]{value, until}
}
