// Package apikey holds the rules of API keys and answers the gateways: it
// verifies keys (Verifier), reports changed keys (Watch) and counts their use
// (Meter).
//
// The registry stores only hashes of keys (authapi.Hash), never a key itself.
package apikey

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// The roles of the admin API. Only keys with one of these roles open the admin API, and they open nothing else.
const (
	Operator identity.Role = "operator" // may change everything
	Auditor  identity.Role = "auditor"  // may read everything
)

// Administers reports whether r is a role of the admin API.
func Administers(r identity.Role) bool { return r == Operator || r == Auditor }

// IsID reports whether id can be the id of a key. Stores use ids as parts of
// record names.
func IsID(id string) bool {
	return id != "" && len(id) <= 200 && utf8.ValidString(id) && !strings.ContainsAny(id, "\x00{}")
}

// ErrID is the error for a text that IsID refuses.
var ErrID = errors.New("the id of a key must have 1 to 200 bytes, without braces and NUL")

// Broker is a tenant of the registry.
type Broker struct {
	Name    string // never changes, because assets name their owner by it
	Title   string
	Contact string
	Blocked bool // the registry refuses all keys of the broker

	Raise       int64     // factor by which the limits of the broker's keys are raised; 0: the limits are not raised
	RaisedUntil time.Time // when the raised limits end

	Created  time.Time
	Modified time.Time
}

// Settings are the properties of a key that operators set.
type Settings struct {
	Name    string
	Role    identity.Role
	Levels  string         // accreditation levels, digits from 0 to 4
	Test    bool           // for test assets only
	Expires time.Time      // zero: never
	Limits  authapi.Limits // nil: only the gateway's limits
	Allow   []netip.Prefix // networks that may use the key; nil: all
}

// Key is a stored API key.
type Key struct {
	ID       string
	Broker   string // "" for a key of the admin API
	Settings Settings
	Created  time.Time
	Modified time.Time
	Revoked  time.Time // zero: not revoked
	Secrets  []Secret  // newest first

	// Unaudited marks a key that a command of an earlier version stored without the registry's secret.
	// The audit log does not mention it until an operator changes it.
	Unaudited bool
}

// Secret is one of the secrets of a key. Each of them gives the same rights.
type Secret struct {
	Number  int    // 1 for the first
	Hash    string // authapi.Hash of the secret
	Created time.Time
	Until   time.Time // end of the grace period; zero: the secret lasts as long as the key
}

// clockError is the largest error of a clock that has no consequence. The error may be a difference between the clocks
// of two services, or a step when somebody sets a clock.
const clockError = time.Hour

// The method `over` reports whether the grace period of the secret has ended. No grace period is longer than MaxGrace.
// So an end that is much later was set by a wrong clock, and counts as passed.
func (s Secret) over(now time.Time) bool {
	return ended(s.Until, now) || s.Until.Sub(now) > MaxGrace+clockError
}

// Fingerprint identifies the secret without revealing it or its hash.
func (s Secret) Fingerprint() string { return authapi.Hash(s.Hash)[:16] }

// MaxSecrets is the number of valid secrets that a key can have at the same time.
const MaxSecrets = 5

// MaxGrace is the longest grace period of a rotated secret.
const MaxGrace = 90 * 24 * time.Hour

// State returns the state of the key at the given time: one of adminapi.States.
func (k Key) State(broker Broker, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return adminapi.Revoked
	case ended(k.Settings.Expires, now):
		return adminapi.Expired
	case broker.Blocked:
		return adminapi.Blocked
	}
	return adminapi.Active
}

func ended(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

// unauditedFor is the time for which a gateway may trust an unaudited key. Gateways
// learn of changes from the audit log, and the log does not mention these keys.
const unauditedFor = 800 * time.Millisecond

// Admit returns the rights that the secret with the given hash gives at the given time. It returns false if the key
// does not have this secret, or is not active. It also returns false if the grace period of the secret is over. An
// unaudited key never opens the admin API.
func (k Key) Admit(hash string, broker Broker, now time.Time) (authapi.Key, bool) {
	at := slices.IndexFunc(k.Secrets, func(s Secret) bool {
		return subtle.ConstantTimeCompare([]byte(s.Hash), []byte(hash)) == 1
	})
	if at < 0 || k.State(broker, now) != adminapi.Active || k.Secrets[at].over(now) ||
		k.Unaudited && Administers(k.Settings.Role) {
		return authapi.Key{}, false
	}
	levels := k.Settings.Levels
	if k.Settings.Test {
		levels += "t"
	}
	admitted := authapi.Key{
		Identity: identity.Identity{Broker: k.Broker, KeyID: k.ID, Role: k.Settings.Role, Levels: levels},
		Secret:   k.Secrets[at].Number,
		Allow:    k.Settings.Allow,
		Limits:   k.Settings.Limits,
	}
	if left := broker.RaisedUntil.Sub(now); broker.Raise > 1 && left > 0 && left <= maxRaisedTime+clockError {
		admitted.Raise, admitted.RaisedFor = broker.Raise, left
	}
	if k.Unaudited {
		admitted.GoodFor = unauditedFor
	}
	for _, end := range []time.Time{k.Settings.Expires, k.Secrets[at].Until} {
		if left := end.Sub(now); !end.IsZero() && (admitted.GoodFor == 0 || left < admitted.GoodFor) {
			admitted.GoodFor = left
		}
	}
	return admitted, true
}

// Rotate returns the key with a new secret. Each former secret stays valid for the grace period, or until its own end
// if that comes first. If grace is 0, all former secrets end immediately. Rotate returns a fault of kind Conflict if
// the key is revoked, or if more than MaxSecrets secrets would be valid. The key keeps at most MaxSecrets secrets: all
// valid ones, and the newest of those that have ended.
func (k Key) Rotate(hash string, grace time.Duration, now time.Time) (Key, error) {
	if err := k.changeable(); err != nil {
		return k, err
	}
	if grace < 0 || grace > MaxGrace {
		return k, fault.New(fault.Invalid, fault.Body, "grace", "The grace must be between 0 and %v.", MaxGrace)
	}
	former := slices.Clone(k.Secrets)
	for i := range former {
		if until := &former[i].Until; until.IsZero() || until.After(now.Add(grace)) {
			*until = now.Add(grace)
		}
	}
	for i := len(former) - 1; i >= 0 && len(former) >= MaxSecrets; i-- {
		if former[i].over(now) {
			former = slices.Delete(former, i, i+1)
		}
	}
	if len(former) >= MaxSecrets {
		return k, k.tooManySecrets()
	}
	newest := Secret{Number: k.Secrets[0].Number + 1, Hash: hash, Created: now}
	k.Secrets = append([]Secret{newest}, former...)
	return k.changed(now), nil
}

// tooManySecrets returns the fault for the rotation of a key that already has MaxSecrets valid secrets.
func (k Key) tooManySecrets() error {
	first := slices.MinFunc(k.Secrets[1:], func(a, b Secret) int { return a.Until.Compare(b.Until) })
	return fault.New(fault.Conflict, fault.Body, "grace", "The key has %d valid secrets, the most it can have. "+
		"Rotate it without grace, which ends all of them, or after the first ends, at %s.",
		len(k.Secrets), first.Until.Format(time.RFC3339))
}

// Revoke returns the key, revoked from now on and for ever.
func (k Key) Revoke(now time.Time) (Key, error) {
	if !k.Revoked.IsZero() {
		return k, fault.New(fault.Conflict, fault.URL, "key", "The key is already revoked.")
	}
	k.Revoked = now
	return k.changed(now), nil
}

// EndAgain returns the key with the ends that an ending names, and whether it changed. A key that lost rights ends now:
// an operator who knows its rights can let it go on.
func (k Key) EndAgain(e authapi.Ending, now time.Time) (Key, bool) {
	changed := false
	end := func(standing *time.Time, at time.Time) {
		if standing.IsZero() || standing.After(at) {
			*standing, changed = at, true
		}
	}
	if e.Closed != nil && k.Revoked.IsZero() {
		k.Revoked, changed = *e.Closed, true
	}
	if e.Rights {
		end(&k.Settings.Expires, now)
	}
	if e.Expires != nil {
		end(&k.Settings.Expires, *e.Expires)
	}
	k.Secrets = slices.Clone(k.Secrets)
	for i := range k.Secrets {
		s := &k.Secrets[i]
		if until, named := e.Until[s.Number]; named {
			end(&s.Until, until)
		} else if s.Number < e.Newest && !s.over(now) {
			end(&s.Until, now)
		}
	}
	return k.changed(now), changed
}

func (k Key) changeable() error {
	if !k.Revoked.IsZero() {
		return fault.New(fault.Conflict, fault.URL, "key", "The key is revoked. Create another one.")
	}
	return nil
}

// changed returns the key with now as the time of a change by an operator. The audit log mentions the change, so the
// key is no longer unaudited.
func (k Key) changed(now time.Time) Key {
	k.Modified, k.Unaudited = now, false
	return k
}

const (
	prefix  = "ark_"
	checked = 6 // number of characters of the checksum
)

// New returns a new API key: "ark_", 26 random letters and digits with 130 bits, and six characters of checksum. Secret
// scanners recognize a key by its prefix and checksum.
func New() string {
	text := prefix + strings.ToLower(rand.Text())
	return text + checksum(text)
}

func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))[:checked]
}

// View returns the broker as the admin API and the audit log show it.
func (b Broker) View() adminapi.Broker { return adminapi.Broker(b) }

// View returns the key as the admin API and the audit log show it: without
// hashes, state and uses.
func (k Key) View() adminapi.Key {
	v := adminapi.Key{
		ID: k.ID, Broker: k.Broker, KeySettings: k.Settings.View(),
		Created: k.Created, Modified: k.Modified, Revoked: optional(k.Revoked),
	}
	for _, s := range k.Secrets {
		v.Secrets = append(v.Secrets, adminapi.Secret{
			Number: s.Number, Fingerprint: s.Fingerprint(), Created: s.Created, Until: optional(s.Until),
		})
	}
	return v
}

// View returns the settings as the admin API shows them.
func (s Settings) View() adminapi.KeySettings {
	v := adminapi.KeySettings{
		Name: s.Name, Role: string(s.Role), Levels: s.Levels, Test: s.Test, Expires: optional(s.Expires), Limits: s.Limits,
	}
	for _, prefix := range s.Allow {
		v.Allow = append(v.Allow, prefix.String())
	}
	return v
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
