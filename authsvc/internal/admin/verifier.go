package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Verifier tells whose a key is: one of the fixed keys (of a file, of the
// sandbox), a plain one that a command has put into the store, or one that is
// administered. It is safe for concurrent use.
type Verifier struct {
	fixed apikey.Keys
	plain PlainKeys
	store Store
	log   *slog.Logger
	now   func() time.Time

	guesses guesses

	mu   sync.Mutex
	seen map[string]time.Time // when a use of an operator's key was last stored
}

// PlainKeys are keys that commands add and remove, without an audit log. Find
// returns whose key has a hash, or apikey.ErrNotFound.
type PlainKeys interface {
	FindKey(ctx context.Context, hash string) (identity.Identity, error)
}

// plainFor is how long a plain key is good without being asked for again: that
// it was removed is not pushed to gateways.
const plainFor = 800 * time.Millisecond

// NewVerifier returns a verifier of all kinds of keys.
func NewVerifier(fixed apikey.Keys, plain PlainKeys, store Store, log *slog.Logger, now func() time.Time) *Verifier {
	return &Verifier{fixed: fixed, plain: plain, store: store, log: log, now: now, seen: map[string]time.Time{}}
}

// refusal is the answer to every key that is not good. That one was, or is
// somebody's, is nobody's business.
func refusal() error {
	return fault.New(fault.Unauthorized, fault.Header, "Authorization",
		"A valid API key is needed: send it as the user name of HTTP Basic authentication, with an empty password.")
}

// Verify tells what the key with a hash makes its bearer in the registry. One
// that is unknown, expired, revoked, or for the admin API alone is a fault of
// kind Unauthorized, the same for all of these after the same work.
func (v *Verifier) Verify(ctx context.Context, hash string) (authapi.Key, error) {
	if i, known := v.fixed.Verify(hash); known {
		return authapi.Key{Identity: i}, nil
	}
	i, err := v.plain.FindKey(ctx, hash)
	if err == nil {
		return authapi.Key{Identity: i, GoodFor: plainFor}, nil
	}
	if !errors.Is(err, apikey.ErrNotFound) {
		return authapi.Key{}, fmt.Errorf("look for key: %w", err)
	}
	admitted, _, err := v.find(ctx, hash)
	if err == nil && apikey.Administers(admitted.Role) {
		return authapi.Key{}, refusal()
	}
	return admitted, err
}

// decoy is judged in place of a key that there is not, so that this takes as long.
var decoy = apikey.Key{Secrets: make([]apikey.Secret, 1)}

func (v *Verifier) find(ctx context.Context, hash string) (authapi.Key, apikey.Key, error) {
	k, broker, err := v.store.FindSecret(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		k, err = decoy, nil
	}
	if err != nil {
		return authapi.Key{}, k, fmt.Errorf("look for key: %w", err)
	}
	admitted, ok := k.Admit(hash, broker, v.now())
	if !ok || k.ID == "" {
		return authapi.Key{}, k, refusal()
	}
	return admitted, k, nil
}

// Operator tells who asks for the admin API, from an address. A key that does
// not open it is a fault of kind Unauthorized; one that may not be used from
// there of kind Forbidden. Where too many wrong ones came from, each is one of
// kind TooMany for a while.
func (v *Verifier) Operator(ctx context.Context, hash string, from netip.Addr) (Actor, error) {
	if err := v.guesses.check(from, v.now()); err != nil {
		return Actor{}, err
	}
	by, err := v.SignedIn(ctx, hash, from)
	if fault.KindOf(err) == fault.Unauthorized && hash != noKey {
		v.guesses.count(from, v.now())
	}
	return by, err
}

// SignedIn tells the same of a hash that this registry has kept from a sign-in.
// It is no guess, whatever else comes from its address.
func (v *Verifier) SignedIn(ctx context.Context, hash string, from netip.Addr) (Actor, error) {
	admitted, k, err := v.find(ctx, hash)
	if err == nil && !apikey.Administers(admitted.Role) {
		err = refusal()
	}
	if err != nil {
		return Actor{}, err
	}
	if !admitted.Allows(from) {
		return Actor{}, fault.New(fault.Forbidden, fault.Header, "Authorization", "This key may not be used from the address %s.", from)
	}
	v.note(ctx, admitted, from)
	return Actor{Name: k.ID + " " + k.Settings.Name, Role: admitted.Role, From: from.String()}, nil
}

const (
	noteEvery = time.Minute // a use of an operator's key is stored at most so often for an address
	maxSeen   = 10_000
)

// note stores that an operator's key was used. It is no reason to refuse if it
// cannot.
func (v *Verifier) note(ctx context.Context, k authapi.Key, from netip.Addr) {
	now, use := v.now(), fmt.Sprint(k.KeyID, " ", k.Secret, " ", from)
	v.mu.Lock()
	due := now.Sub(v.seen[use]) >= noteEvery
	if due {
		if len(v.seen) >= maxSeen {
			clear(v.seen)
		}
		v.seen[use] = now
	}
	v.mu.Unlock()
	if !due {
		return
	}
	if err := v.store.AddUsage(ctx, []authapi.Use{{KeyID: k.KeyID, Secret: k.Secret, Addr: from, Micros: now.UnixMicro()}}, nil); err != nil {
		v.log.Warn("the use of an operator's key is not noted", "error", err)
	}
}
