// Package asset holds the rules of the registry: the fields of an asset, its states, and who may change what,
// when. The package is pure: it uses no clock, network or store. Callers pass in everything it needs.
//
// Four tables hold the rules: the fields, with the first API version of each field (fields.go), the states
// (states.go), the parts that have separate paths (parts.go), and the codes (data/). One walk over the field table
// (walk.go) merges a request into the stored asset, converts the values and reports every fault. A View (view.go)
// derives the answers of old API versions from the same table.
package asset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// Role is the role of a caller for one asset (docs/contract.md, "Roles").
type Role string

// The roles. A caller with the role Owner has a key of the asset's owner, and the asset's token. A caller with the
// role Other has an API key, but none of the first three roles.
const (
	Owner         Role = "owner"
	Concierge     Role = "concierge"
	Administrator Role = "administrator"
	Other         Role = "other"
)

// Rules are the rules for assets, with the settings of one operator.
type Rules struct {
	Types   []string       // accepted values of assetType, such as bounce
	Sandbox bool           // accept sandboxParameters
	Zone    *time.Location // constant offset, for the service's timestamps and for sent ones without an offset
	Codes   CodeLists      // code lists of the operator; nil: none
	Hidden  []Group        // fields that only callers with an API key see, sorted
}

// Asset is an asset that follows the rules. It is immutable.
type Asset struct {
	fields  record.Object // all fields except dateModified, in the order of the field table
	ignored []string
}

// Ignored returns the names of the fields whose values the registry ignored in the request that made this asset. The
// client is not allowed to write these fields, and the values that it sent differ from the asset's values. A name
// contains no indexes of lists. There are at most 20 names. An asset that no request has made has no such names.
func (a Asset) Ignored() []string { return a.ignored }

// Decode reads an asset from the output of Encode.
func Decode(body []byte) (Asset, error) {
	value, err := record.Parse(body)
	if err != nil {
		return Asset{}, fmt.Errorf("decode asset: %w", err)
	}
	a := Asset{}
	a.fields, _ = value.(record.Object)
	if a.ID() == "" || a.Status() == "" {
		return Asset{}, errors.New("decode asset: the id or the status is missing")
	}
	return a, nil
}

// Encode returns the asset as a JSON object, with its members in the order of the field table. The field dateModified
// is absent, because the store assigns it: it is the asset's position in the feed.
func (a Asset) Encode() []byte { return record.Append(nil, a.fields) }

// Numbered returns the asset with the given human-readable identifier.
func (a Asset) Numbered(assetID string) Asset {
	return finish(a.fields.With("assetID", assetID), a.ignored)
}

// OwnedBy returns the asset with the given broker as its owner.
func (a Asset) OwnedBy(broker string) Asset {
	return Asset{fields: a.fields.With("owner", broker)}
}

// Equal reports whether two assets have the same fields.
func (a Asset) Equal(b Asset) bool { return record.Equal(a.fields, b.fields) }

// Fields returns the asset as the JSON object that Encode prints. Callers must
// not change it.
func (a Asset) Fields() record.Object { return a.fields }

// ID returns the asset's id, 32 lowercase hex characters.
func (a Asset) ID() string { return a.fields.Text("id") }

// AssetID returns the asset's human-readable identifier.
func (a Asset) AssetID() string { return a.fields.Text("assetID") }

// Owner returns the name of the broker that owns the asset.
func (a Asset) Owner() string { return a.fields.Text("owner") }

// Status returns the asset's state.
func (a Asset) Status() Status { return Status(a.fields.Text("status")) }

// Test reports whether the asset is in test mode.
func (a Asset) Test() bool { return a.fields.Text("mode") == testMode }

// Listed reports whether the asset is in the feed: all assets are, except drafts
// (docs/contract.md, "Feed").
func (a Asset) Listed() bool { return a.Status() != Draft }

// Status is the state of an asset (docs/contract.md, "States").
type Status string

// The states.
const (
	Draft        Status = "draft"
	Pending      Status = "pending"
	Verification Status = "verification"
	Active       Status = "active"
	Complete     Status = "complete"
	Deleted      Status = "deleted"
)

// Statuses lists all states in the order of an asset's life.
var Statuses = []Status{Draft, Pending, Verification, Active, Complete, Deleted}

// statusNames returns Statuses as strings.
func statusNames() []string {
	names := make([]string, len(Statuses))
	for i, s := range Statuses {
		names[i] = string(s)
	}
	return names
}

// state lists the roles that may change an asset in one state. For each next state, it lists the roles that may
// move the asset there.
type state struct {
	writers []Role
	to      map[Status][]Role
}

// states is the table in docs/contract.md, "States". An asset in a state that is not in the table never
// changes.
var states = map[Status]state{
	Draft: {
		writers: []Role{Owner, Administrator},
		to:      map[Status][]Role{Pending: {Owner, Administrator}},
	},
	Pending: {
		writers: []Role{Owner, Concierge, Administrator},
		to:      map[Status][]Role{Deleted: {Owner, Administrator}, Verification: {Concierge, Administrator}},
	},
	Verification: {
		writers: []Role{Concierge, Administrator},
		to:      map[Status][]Role{Active: {Concierge, Administrator}, Pending: {Concierge, Administrator}},
	},
	Active: {
		writers: []Role{Concierge, Administrator},
		to:      map[Status][]Role{Pending: {Concierge, Administrator}, Complete: {Concierge, Administrator}},
	},
}

// mayChange reports whether a role may change an asset in this state.
func (s Status) mayChange(by Role) bool { return slices.Contains(states[s].writers, by) }

// whoMay says who may change an asset in this state, or move it to another state.
func (s Status) whoMay(to Status) string {
	now, what := states[s], "changes it"
	roles := now.writers
	if s != to && len(roles) > 0 {
		if roles, what = now.to[to], "sets "+string(to); len(roles) == 0 {
			return "it can become " + orList(Statuses, func(next Status) bool { return now.to[next] != nil })
		}
	}
	if len(roles) == 0 {
		return "this state is final"
	}
	return "only the " + orList(roles, func(Role) bool { return true }) + " " + what
}

// orList joins the wanted names by "or".
func orList[T ~string](all []T, isWanted func(T) bool) string {
	var names []string
	for _, one := range all {
		if isWanted(one) {
			names = append(names, string(one))
		}
	}
	return strings.Join(names, " or ")
}

// mayBecome reports whether a role may move an asset from this state to another. An asset may always stay in
// its state.
func (s Status) mayBecome(to Status, by Role) bool {
	return s == to || slices.Contains(states[s].to[to], by)
}

// reason accepts a string that a person can read, and nothing else in place of a string.
var reason = plain{form: Form{Kind: "string"},
	take: func(w *walk, path string, _, sent record.Value) record.Value {
		s, ok := sent.(string)
		if !ok || !fault.SaysSomething(s) {
			w.wrong(path, "This must be a string that says why.")
		}
		return s
	}}.upTo(codeLength)

// ParseRecovery returns the reason of a recovery. Its error is a fault of kind Invalid that lists everything
// wrong with the sent body.
func ParseRecovery(sent record.Object) (reason string, err error) {
	w := &walk{}
	r, _ := recoveryModel.convert(w, "", nil, sent).(record.Object)
	return r.Text("reason"), w.fault()
}

// ParseHandover returns the id of a transfer and the transfer token of an asset. Its error is a fault of kind
// Invalid that lists everything wrong with the sent body.
func ParseHandover(sent record.Object) (transfer, token string, err error) {
	w := &walk{}
	h, _ := handoverModel.convert(w, "", nil, sent).(record.Object)
	return h.Text("id"), h.Text("transfer"), w.fault()
}

// CheckTransfer returns a fault of kind Invalid if the sent body has a field that a transfer does not have, or a
// field of the wrong type.
func CheckTransfer(sent record.Object) error {
	w := &walk{}
	transferModel.convert(w, "", nil, sent)
	return w.fault()
}
