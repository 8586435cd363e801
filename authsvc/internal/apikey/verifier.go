package apikey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// Verifier finds the holder of a key: a fixed key or a stored one. It is safe for
// concurrent use.
type Verifier struct {
	fixed Fixed
	keys  Finder
	now   func() time.Time
	guard Guard
}

// Guard knows whether a store of keys can have gone back in time.
type Guard interface {
	// Check returns nil if a store whose audit log ends at this head has all that ended rights. It waits a moment.
	Check(ctx context.Context, head adminapi.Head) error
}

// WithGuard returns a verifier that asks a guard about each answer of the store.
func (v *Verifier) WithGuard(guard Guard) *Verifier {
	with := *v
	with.guard = guard
	return &with
}

// NewVerifier returns a verifier of fixed keys, which may be nil, and of the keys
// in a store.
func NewVerifier(fixed Fixed, keys Finder, now func() time.Time) *Verifier {
	return &Verifier{fixed: fixed, keys: keys, now: now}
}

// Verify returns the rights that the key with the given hash gives in the registry. If the key is unknown, expired,
// revoked, or only for the admin API, it returns a fault of kind Unauthorized. In each of these cases, the fault is
// the same, and Verify does the same work. A stored key needs one round trip to the store, and a fixed key none.
func (v *Verifier) Verify(ctx context.Context, hash string) (authapi.Key, error) {
	if holder, known := v.fixed[hash]; known {
		return authapi.Key{Identity: holder}, nil
	}
	_, admitted, err := v.Find(ctx, hash)
	if err == nil && Administers(admitted.Role) {
		return authapi.Key{}, Refusal()
	}
	return admitted, err
}

// decoy is checked in place of an unknown key, so that answers about unknown and known keys take the same time.
var decoy = Key{Secrets: make([]Secret, 1)}

// Find returns the stored key that has a secret with this hash, and the rights that the secret gives, including
// rights in the admin API. It returns the fault of Refusal if the secret gives no rights.
func (v *Verifier) Find(ctx context.Context, hash string) (Key, authapi.Key, error) {
	found, err := v.find(ctx, hash)
	k := found.Key
	if errors.Is(err, ErrNotFound) {
		k, err = decoy, nil
	}
	if err != nil {
		return Key{}, authapi.Key{}, fmt.Errorf("look up key: %w", err)
	}
	admitted, ok := k.Admit(hash, found.Broker, v.now())
	if !ok || k.ID == "" {
		return Key{}, authapi.Key{}, Refusal()
	}
	return k, admitted, nil
}

// find asks the store. If the store had gone back in time, it asks again, as ended rights may have come back.
func (v *Verifier) find(ctx context.Context, hash string) (Found, error) {
	for {
		found, err := v.keys.FindSecret(ctx, hash)
		if v.guard == nil || err != nil && !errors.Is(err, ErrNotFound) {
			return found, err
		}
		if behind := v.guard.Check(ctx, found.Head); !errors.Is(behind, ErrAskAgain) {
			return found, cmp.Or(behind, err)
		}
	}
}

// ErrAskAgain is the error of a Guard for a store that has become right during the call.
var ErrAskAgain = errors.New("the store of keys has changed")

// Refusal returns the fault for every key that gives no rights. It does not reveal
// whether the key ever existed.
func Refusal() error {
	return fault.New(fault.Unauthorized, fault.Header, "Authorization",
		"A valid API key is needed: send it as the user name of HTTP Basic authentication, with an empty password.")
}
