package apikey

import (
	"crypto/subtle"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// The roles of those who administer the registry. Their keys open the admin
// API and nothing else; no other key opens it.
const (
	Operator identity.Role = "operator" // may do everything there
	Auditor  identity.Role = "auditor"  // may read everything there
)

// Administers tells whether a role is for the admin API.
func Administers(r identity.Role) bool { return r == Operator || r == Auditor }

// Broker is a tenant.
type Broker struct {
	Name     string // never changes: assets name it as their owner
	Title    string
	Contact  string
	Blocked  bool // none of its keys is good
	Created  time.Time
	Modified time.Time
}

// Settings are what an operator says of a key.
type Settings struct {
	Name    string
	Role    identity.Role
	Levels  string // accreditation levels, of 0 to 4
	Test    bool   // for test assets only
	Expires time.Time
	Limits  authapi.Limits
	Allow   []netip.Prefix
}

// Key is an API key that is kept in a store, by the hashes of its secrets.
type Key struct {
	ID       string
	Broker   string // "" for one of those who administer
	Settings Settings
	Created  time.Time
	Modified time.Time
	Revoked  time.Time
	Secrets  []Secret // the newest first
}

// Secret is one of a key's secrets, all of which have the same rights.
type Secret struct {
	Number  int
	Hash    string // authapi.Hash
	Created time.Time
	Until   time.Time // end of its grace; zero: it lasts as long as the key
}

// Fingerprint tells a secret from others, and nothing of it.
func (s Secret) Fingerprint() string { return authapi.Hash(s.Hash)[:16] }

// MaxSecrets is the most secrets of a key that are kept, and so the most that
// are good at the same time.
const MaxSecrets = 5

// MaxGrace is the longest that a secret stays good after its rotation.
const MaxGrace = 90 * 24 * time.Hour

// State tells whether a key is good at a time, in the words of adminapi.
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

// Admit returns what a secret with a hash makes its bearer at a time, if it is
// good.
func (k Key) Admit(hash string, broker Broker, now time.Time) (authapi.Key, bool) {
	at := slices.IndexFunc(k.Secrets, func(s Secret) bool { return subtle.ConstantTimeCompare([]byte(s.Hash), []byte(hash)) == 1 })
	if at < 0 || k.State(broker, now) != adminapi.Active || ended(k.Secrets[at].Until, now) {
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
	for _, end := range []time.Time{k.Settings.Expires, k.Secrets[at].Until} {
		if left := end.Sub(now); !end.IsZero() && (admitted.GoodFor == 0 || left < admitted.GoodFor) {
			admitted.GoodFor = left
		}
	}
	return admitted, true
}

// Rotate gives the key a new secret. The one before stays good for a time of
// grace, unless its end was nearer already.
func (k Key) Rotate(hash string, grace time.Duration, now time.Time) (Key, error) {
	if err := k.changeable(); err != nil {
		return k, err
	}
	if grace < 0 || grace > MaxGrace {
		return k, fault.New(fault.Invalid, fault.Body, "grace", "The grace must be between 0 and %v.", MaxGrace)
	}
	k.Secrets = slices.Clone(k.Secrets)
	if newest := &k.Secrets[0]; newest.Until.IsZero() || newest.Until.After(now.Add(grace)) {
		newest.Until = now.Add(grace)
	}
	if len(k.Secrets) >= MaxSecrets {
		if last := k.Secrets[len(k.Secrets)-1]; !ended(last.Until, now) {
			return k, fault.New(fault.Conflict, fault.Body, "grace", "The key has %d secrets that are still good; the next may be made when the grace of the oldest ends, at %s.", len(k.Secrets), last.Until.Format(time.RFC3339))
		}
		k.Secrets = k.Secrets[:MaxSecrets-1]
	}
	k.Secrets = append([]Secret{{Number: k.Secrets[0].Number + 1, Hash: hash, Created: now}}, k.Secrets...)
	k.Modified = now
	return k, nil
}

// Revoke ends the key, at once and for good.
func (k Key) Revoke(now time.Time) (Key, error) {
	if !k.Revoked.IsZero() {
		return k, fault.New(fault.Conflict, fault.URL, "key", "The key is revoked already.")
	}
	k.Revoked, k.Modified = now, now
	return k, nil
}

// Set changes what is said of the key, and reports everything that is wrong with
// it. What it administers, or that it does not, stays.
func (k Key) Set(s Settings, now time.Time) (Key, error) {
	if err := k.changeable(); err != nil {
		return k, err
	}
	var found problems.List
	if slices.Contains(roles(), s.Role) && Administers(s.Role) != Administers(k.Settings.Role) {
		found.Add("role", "A key of a broker cannot become one that administers, nor the other way round: make another.")
		s.Role = k.Settings.Role // by which the rest is judged
	}
	k.Settings, k.Modified = s, now
	return k, found.With(k.Check())
}

func (k Key) changeable() error {
	if !k.Revoked.IsZero() {
		return fault.New(fault.Conflict, fault.URL, "key", "The key is revoked: make another.")
	}
	return nil
}

// What bounds a key, so that an answer about it, which gateways read no more
// than so much of, always has room for all of it.
const (
	maxText    = 200 // characters of a name, title or contact
	maxAllow   = 100
	maxWindows = 8 // of a class of requests
)

// Check reports everything that is wrong with a key.
func (k Key) Check() error {
	var found problems.List
	s := k.Settings
	checkText(&found, "name", s.Name, true)
	k.checkRole(&found)
	levels := []byte(s.Levels)
	slices.Sort(levels)
	if strings.Trim(s.Levels, "01234") != "" || len(slices.Compact(levels)) < len(s.Levels) {
		found.Add("levels", "The levels must be of 0, 1, 2, 3 and 4, each once.")
	}
	if len(s.Allow) > maxAllow {
		found.Add("allow", "At most %d addresses and networks.", maxAllow)
	}
	checkLimits(&found, s.Limits)
	return found.Err()
}

// roles are all that a key may have.
func roles() []identity.Role {
	return []identity.Role{identity.Broker, identity.Concierge, identity.Administrator, Operator, Auditor}
}

func (k Key) checkRole(found *problems.List) {
	s := k.Settings
	switch {
	case !slices.Contains(roles(), s.Role):
		found.Add("role", "The role must be one of broker, concierge, administrator, operator, auditor.")
	case !Administers(s.Role):
		if k.Broker == "" {
			found.Add("broker", "A key of this role needs a broker.")
		}
	default:
		if k.Broker != "" {
			found.Add("broker", "Who administers the registry belongs to no broker.")
		}
		if s.Levels != "" || s.Test || len(s.Limits) > 0 {
			found.Add("role", "A key that administers has neither levels, test mode nor limits.")
		}
	}
}

// checkLimits notes what is wrong with limits by its place in them:
// "limits.write.1m".
func checkLimits(found *problems.List, limits authapi.Limits) {
	for _, class := range slices.Sorted(maps.Keys(limits)) {
		if !slices.Contains(authapi.Classes(), class) {
			found.Add("limits."+class, "Requests are of class list, read or write, not %.50q.", class)
		}
		if len(limits[class]) > maxWindows {
			found.Add("limits."+class, "At most %d limits of a class.", maxWindows)
			continue
		}
		for _, window := range slices.Sorted(maps.Keys(limits[class])) {
			var wrong []string
			length, err := time.ParseDuration(window)
			if err != nil || len(window) > maxText || length < time.Second || length > 24*time.Hour || length%time.Second != 0 {
				wrong = append(wrong, fmt.Sprintf("%.50q is no length of a window: whole seconds, up to 24h.", window))
			}
			if n := limits[class][window]; n < 1 || n > 1<<40 {
				wrong = append(wrong, fmt.Sprintf("A limit must be above nought, and at most %d.", int64(1)<<40))
			}
			if wrong != nil {
				found.Add("limits."+class+"."+window, "%s", strings.Join(wrong, " "))
			}
		}
	}
}

// Check reports everything that is wrong with a broker.
func (b Broker) Check() error {
	var found problems.List
	checkText(&found, "name", b.Name, true)
	if strings.Contains(b.Name, "/") {
		found.Add("name", "No slash: the name stands in paths.")
	}
	checkText(&found, "title", b.Title, false)
	checkText(&found, "contact", b.Contact, false)
	return found.Err()
}

func checkText(found *problems.List, name, text string, needed bool) {
	switch {
	case text == "" && needed:
		found.Add(name, "This field is required.")
	case len([]rune(text)) > maxText:
		found.Add(name, "At most %d characters.", maxText)
	case !utf8.ValidString(text) || strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		found.Add(name, "Only characters that print, and no blanks around them.")
	}
}
