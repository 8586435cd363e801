package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// Authenticator identifies the callers of the admin API and the console by their
// keys. It is safe for concurrent use.
type Authenticator struct {
	keys *apikey.Verifier
	uses apikey.Recorder
	log  *slog.Logger
	now  func() time.Time

	guesses guesses

	mu   sync.Mutex
	seen map[string]time.Time // time of the last stored use, for each key, secret and address
}

// NewAuthenticator returns an authenticator. The authenticator stores the use of operators' keys in the argument
// `uses`.
func NewAuthenticator(
	keys *apikey.Verifier, uses apikey.Recorder, log *slog.Logger, now func() time.Time,
) *Authenticator {
	return &Authenticator{keys: keys, uses: uses, log: log, now: now, seen: map[string]time.Time{}}
}

// Operator identifies a caller by the hash of the key that the caller sent, and by the caller's address. It
// returns a fault of kind Unauthorized for a key that does not open the admin API, and of kind Forbidden for a
// key that is not allowed to be used from the address. An address that sent too many wrong keys gets faults of kind
// TooMany for a while.
func (a *Authenticator) Operator(ctx context.Context, hash string, from netip.Addr) (Actor, error) {
	if err := a.guesses.check(from, time.Now()); err != nil {
		return Actor{}, err
	}
	by, err := a.SignedIn(ctx, hash, from)
	if fault.KindOf(err) == fault.Unauthorized && hash != noKey {
		a.guesses.count(from, time.Now())
	}
	return by, err
}

// SignedIn identifies a caller by a hash from a session that this registry sealed. This hash is never a guess,
// so wrong keys from the same address do not block the caller.
func (a *Authenticator) SignedIn(ctx context.Context, hash string, from netip.Addr) (Actor, error) {
	k, admitted, err := a.keys.Find(ctx, hash)
	if err == nil && !apikey.Administers(admitted.Role) {
		err = apikey.Refusal()
	}
	if err != nil {
		return Actor{}, err
	}
	if !admitted.Allows(from) {
		return Actor{}, fault.New(fault.Forbidden, fault.Header, "Authorization",
			"This key may not be used from the address %s.", from)
	}
	a.recordUse(ctx, admitted, from)
	return Actor{Name: k.ID + " " + k.Settings.Name, Role: admitted.Role, From: from.String()}, nil
}

const (
	recordEvery = time.Minute // a key's use from an address is stored at most once in this time
	maxSeen     = 10_000      // uses that are remembered; if there are more, uses are stored more often
)

// recordUse stores the use of an operator's key. A failure is only logged, because the operator can work
// without it.
func (a *Authenticator) recordUse(ctx context.Context, k authapi.Key, from netip.Addr) {
	now := a.now()
	if !a.due(fmt.Sprint(k.KeyID, " ", k.Secret, " ", from), now) {
		return
	}
	use := authapi.Use{KeyID: k.KeyID, Secret: k.Secret, Addr: from, Micros: now.UnixMicro()}
	if err := a.uses.AddUsage(ctx, []authapi.Use{use}, nil); err != nil {
		a.log.Warn("store the use of an operator's key", "key", k.KeyID, "error", err)
	}
}

func (a *Authenticator) due(use string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if since := now.Sub(a.seen[use]); since >= 0 && since < recordEvery {
		return false
	}
	if len(a.seen) >= maxSeen {
		clear(a.seen)
	}
	a.seen[use] = now
	return true
}
