package admin

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
	"asset-registry/shared/sleep"
)

// Authenticator identifies the callers of the admin API and the console by their
// keys. It is safe for concurrent use.
type Authenticator struct {
	keys *apikey.Verifier
	uses apikey.Recorder
	log  *slog.Logger
	now  func() time.Time

	guesses guesses
	refused refusals
}

// NewAuthenticator returns an authenticator. The authenticator stores the use of operators' keys in the argument
// `uses`.
func NewAuthenticator(
	keys *apikey.Verifier, uses apikey.Recorder, log *slog.Logger, now func() time.Time,
) *Authenticator {
	return &Authenticator{keys: keys, uses: uses, log: log, now: now}
}

// Operator identifies a caller by the hash of the key that the caller sent, and by the caller's address. It
// returns a fault of kind Unauthorized for a key that does not open the admin API, and of kind Forbidden for a
// key that is not allowed to be used from the address. An address that sent too many wrong keys gets faults of kind
// TooMany for a while.
func (a *Authenticator) Operator(ctx context.Context, hash string, from netip.Addr) (Actor, error) {
	if err := a.guesses.check(from, time.Now()); err != nil {
		a.refused.count(from, Refused{LockedOut: 1})
		return Actor{}, err
	}
	by, err := a.SignedIn(ctx, hash, from)
	switch fault.KindOf(err) {
	case fault.Unauthorized:
		if hash == noKey {
			return by, err
		}
		a.guesses.count(from, time.Now())
		a.refused.count(from, Refused{Keys: 1})
	case fault.Forbidden:
		a.refused.count(from, Refused{Keys: 1})
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

// RefusedSignIn counts a sign-in by OpenID Connect that was refused.
func (a *Authenticator) RefusedSignIn(from netip.Addr) { a.refused.count(from, Refused{SignIns: 1}) }

// maxRefused is the maximum number of addresses with refused keys that the audit log has for a minute. The others are
// together in one more entry.
const maxRefused = 1000

// Refused is what the audit log shows of the keys and sign-ins that were refused in a minute.
type Refused struct {
	Keys      int `json:"keys"`                 // requests with a wrong key, or with one from a foreign address
	LockedOut int `json:"locked_out,omitempty"` // requests that were refused because of too many wrong keys
	SignIns   int `json:"sign_ins,omitempty"`   // sign-ins that the provider or a missing role has refused
}

// refusals counts refused keys by the network of their address.
type refusals struct {
	mu sync.Mutex
	by map[netip.Addr]Refused // the zero address stands for all networks that have no room
}

func (r *refusals) count(from netip.Addr, more Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[netip.Addr]Refused{}
	}
	network := clientaddr.Network(from)
	if _, known := r.by[network]; !known && len(r.by) >= maxRefused {
		network = netip.Addr{}
	}
	n := r.by[network]
	r.by[network] = Refused{n.Keys + more.Keys, n.LockedOut + more.LockedOut, n.SignIns + more.SignIns}
}

// refusedPause is the time between two entries about refused keys, so that others can make changes meanwhile.
const refusedPause = 10 * time.Millisecond

// NoteRefused writes into the audit log which keys this process has refused since the last call: an entry for each
// network, and one for all networks that had no room.
func (a *Authenticator) NoteRefused(ctx context.Context, log *Service) {
	a.refused.mu.Lock()
	refused := a.refused.by
	a.refused.by = nil
	a.refused.mu.Unlock()
	for network, n := range refused {
		by := Actor{Name: "nobody", From: "other addresses"}
		if network.IsValid() {
			by.From = network.String()
		}
		if err := log.Witness(ctx, by, audit.Refuse, audit.LogSubject, n); err != nil {
			a.log.Warn("note refused keys in the audit log", "addresses", len(refused), "error", err)
			return
		}
		sleep.For(ctx, refusedPause)
	}
}

// recordUse stores the use of an operator's key. A failure is only logged, because the operator can work
// without it.
func (a *Authenticator) recordUse(ctx context.Context, k authapi.Key, from netip.Addr) {
	use := authapi.Use{KeyID: k.KeyID, Secret: k.Secret, Addr: from, Micros: a.now().UnixMicro()}
	if err := a.uses.AddUsage(ctx, []authapi.Use{use}, nil); err != nil {
		a.log.Warn("store the use of an operator's key", "key", k.KeyID, "error", err)
	}
}

const (
	maxGuesses  = 30 // wrong keys from one network within guessWindow
	guessWindow = time.Minute
	maxGuessers = 10_000 // networks and prefixes that are remembered; each takes about 150 bytes
)

// noKey is the hash of a request without a key. Such a request is not a guess.
var noKey = authapi.Hash("")

// guesses limits how many wrong keys an address may send to the admin API. Nobody can guess a key, but without a
// limit the attempts would be a load on the store. Each auth service counts separately. No network is forgotten before
// its window ends. If there is no room for another one, it counts with others of its prefix; if there is no room for
// prefixes either, it counts with all such networks.
type guesses struct {
	mu      sync.Mutex
	windows map[netip.Prefix]*guessing
	swept   time.Time // when the windows that had ended were removed
}

// guessing has the wrong keys of a network since the begin of its window.
type guessing struct {
	begun time.Time
	sent  int
}

// keysOf returns the keys under which the wrong keys of an address may count: its network, its prefix, and the key of
// all networks.
func keysOf(from netip.Addr) [3]netip.Prefix {
	network := clientaddr.Network(from)
	return [3]netip.Prefix{netip.PrefixFrom(network, network.BitLen()), clientaddr.Prefix(network), {}}
}

// of returns the counter for the network of an address. The caller holds the lock.
func (g *guesses) of(from netip.Addr, now time.Time) *guessing {
	most := maxGuessers * 3 / 4 // the others are for prefixes
	for _, key := range keysOf(from) {
		if w := g.windows[key]; w != nil {
			if now.Sub(w.begun).Abs() >= guessWindow {
				*w = guessing{begun: now}
			}
			return w
		}
		if len(g.windows) >= most {
			g.sweep(now)
		}
		if len(g.windows) < most || key == (netip.Prefix{}) {
			if g.windows == nil {
				g.windows = map[netip.Prefix]*guessing{}
			}
			g.windows[key] = &guessing{begun: now}
			return g.windows[key]
		}
		most = maxGuessers - 1
	}
	return nil // not reached: the last key always has room
}

// sweep removes the windows that have ended, once a second at most.
func (g *guesses) sweep(now time.Time) {
	if now.Sub(g.swept).Abs() < time.Second {
		return
	}
	g.swept = now
	for key, w := range g.windows {
		if now.Sub(w.begun).Abs() >= guessWindow {
			delete(g.windows, key)
		}
	}
}

// check returns a fault of kind TooMany for an address that sent maxGuesses wrong
// keys in its current window.
func (g *guesses) check(from netip.Addr, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range keysOf(from) {
		if w := g.windows[key]; w != nil && now.Sub(w.begun).Abs() < guessWindow {
			return w.refuse(now)
		}
	}
	return nil
}

func (w *guessing) refuse(now time.Time) error {
	if w.sent < maxGuesses {
		return nil
	}
	left := min(w.begun.Add(guessWindow).Sub(now), guessWindow)
	seconds := (left + time.Second - 1) / time.Second
	refused := fault.New(fault.TooMany, fault.Header, "Authorization",
		"Too many wrong keys came from your address; wait %d s.", seconds)
	refused.RetryAfter = left
	return refused
}

// count counts a wrong key.
func (g *guesses) count(from netip.Addr, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(from, now).sent++
}
