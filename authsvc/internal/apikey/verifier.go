package apikey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
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

// Fixed maps the hash of a key (authapi.Hash) to its holder. Fixed keys come from
// a keys file or the sandbox and never change while the service runs.
type Fixed map[string]identity.Identity

// Sandbox returns the keys of a sandbox (docs/contract.md, "Sandbox keys"). Each key
// equals its broker's name.
func Sandbox() Fixed {
	keys := Fixed{}
	add := func(name string, role identity.Role, levels string) {
		keys[authapi.Hash(name)] = identity.Identity{Broker: name, KeyID: "sandbox-" + name, Role: role, Levels: levels}
	}
	add("broker", identity.Broker, "1234")
	for _, level := range []string{"1", "2", "3", "4"} {
		add("broker"+level, identity.Broker, level)
		add("broker"+level+"t", identity.Broker, level+"t")
	}
	add("concierge", identity.Concierge, "")
	add("administrator", identity.Administrator, "")
	return keys
}

// The errors of stores that mean something to callers. Any other error of a store means that it could not
// answer, or that nobody knows whether it made a change.
var (
	ErrNotFound = errors.New("there is no such key or broker")
)

// Finder finds keys by their secrets.
type Finder interface {
	// FindSecret returns the key that has a secret with this hash. If no key has the secret, the error is ErrNotFound,
	// and the result has only the head. FindSecret makes one round trip to the store, and does the same work whether it
	// finds the key or not.
	FindSecret(ctx context.Context, hash string) (Found, error)
}

// Found is a key as a store has it at one moment.
type Found struct {
	Key    Key
	Broker Broker        // the broker of the key; zero if the store does not have it
	Head   adminapi.Head // the end of the audit log
}

// Log is the audit log. Each change of a broker or key has an entry.
type Log interface {
	// Head returns the end of the log. It includes every change whose call has returned.
	Head(ctx context.Context) (adminapi.Head, error)
	// Entries returns up to limit entries, in order. The first one follows the entry with the number in the
	// argument `after`.
	Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error)
}

// Recorder stores the use of keys.
type Recorder interface {
	// AddUsage adds the given counts to the stored ones. For each secret and address, the store keeps only the newest
	// use. Of these uses of a secret, it keeps only the newest MaxUses.
	AddUsage(ctx context.Context, uses []authapi.Use, counts []authapi.Count) error
}

// MaxUses is the maximum number of uses of one secret that a store keeps.
const MaxUses = 8

// UsageDays is the minimum number of days for which a store keeps counts.
const UsageDays = 400

// Meter stores the gateways' reports about the use of keys.
type Meter struct {
	uses Recorder
	now  func() time.Time
}

// NewMeter returns a meter that stores reports in the argument `uses`.
func NewMeter(uses Recorder, now func() time.Time) *Meter { return &Meter{uses, now} }

// Report adds a gateway's report. A gateway that gets no answer sends the report again, and Report may then
// count it twice: usage is information, not a bill. Report ignores counts of unknown classes, because a newer
// gateway may have more classes. If a gateway's clock is wrong, a day far from today counts as today, and a time
// in the future as now. A malformed report is a fault of kind Invalid.
func (m *Meter) Report(ctx context.Context, r authapi.ReportUsageRequest) error {
	if len(r.Uses) > authapi.MaxReport || len(r.Counts) > authapi.MaxReport ||
		slices.ContainsFunc(r.Uses, malformedUse) || slices.ContainsFunc(r.Counts, malformedCount) {
		return fault.New(fault.Invalid, fault.Body, "data", "This is not a report about the use of keys.")
	}
	known := slices.DeleteFunc(slices.Clone(r.Counts), func(c authapi.Count) bool {
		return !slices.Contains(authapi.Classes(), c.Class)
	})
	now := m.now().UTC()
	oldest, newest := now.AddDate(0, 0, -UsageDays).Format(time.DateOnly), now.AddDate(0, 0, 1).Format(time.DateOnly)
	for i, c := range known {
		if c.Day < oldest || c.Day > newest {
			known[i].Day = now.Format(time.DateOnly)
		}
	}
	uses := slices.Clone(r.Uses)
	for i := range uses {
		uses[i].Micros = min(uses[i].Micros, now.UnixMicro())
	}
	return m.uses.AddUsage(ctx, uses, known)
}

func malformedUse(u authapi.Use) bool {
	return !IsID(u.KeyID) || !u.Addr.IsValid() || u.Addr.Zone() != ""
}

func malformedCount(c authapi.Count) bool {
	_, err := time.Parse(time.DateOnly, c.Day)
	return err != nil || !IsID(c.KeyID) || c.Requests < 0
}
