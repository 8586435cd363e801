package apikey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"asset-registry/shared/identity"
)

// Errors of a Store that callers act on.
var (
	ErrNotFound = errors.New("there is no such key")
	ErrExists   = errors.New("there is a key of this name, or this key, already")
)

// Store keeps keys that come and go while the service works. It is safe for
// concurrent use.
type Store interface {
	// AddKey durably stores a key by its hash. It returns ErrExists if there is
	// one with the same KeyID.
	AddKey(ctx context.Context, hash string, i identity.Identity) error
	// FindKey returns whose key has a hash, or ErrNotFound.
	FindKey(ctx context.Context, hash string) (identity.Identity, error)
	// RemoveKey durably removes the key with a KeyID, or returns ErrNotFound.
	RemoveKey(ctx context.Context, keyID string) error
}

// stored is a key as stores keep it, under its hash.
type stored struct {
	KeyID  string        `json:"id"`
	Broker string        `json:"broker"`
	Role   identity.Role `json:"role"`
	Levels string        `json:"levels,omitempty"`
}

// Encode returns whose a key is as text for a store to keep.
func Encode(i identity.Identity) ([]byte, error) {
	text, err := json.Marshal(stored{i.KeyID, i.Broker, i.Role, i.Levels})
	if err != nil {
		return nil, fmt.Errorf("encode key %s: %w", i.KeyID, err)
	}
	return text, nil
}

// Decode returns what Encode made the text of.
func Decode(text []byte) (identity.Identity, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return identity.Identity{}, fmt.Errorf("decode key: %w", err)
	}
	return identity.Identity{KeyID: s.KeyID, Broker: s.Broker, Role: s.Role, Levels: s.Levels}, nil
}
