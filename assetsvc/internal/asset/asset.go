// Package asset holds the rules of the registry: what an asset is, and who may
// change what of it, when. It is pure: no clock, no network, no store; all it
// needs is handed in, and all it decides is returned.
//
// The field model (fields.go) is one table; one walk over it (walk.go) merges
// what a client sent into what is stored, converts it and finds every fault.
// Who may change what, and when, is in two more: states.go has the states, and
// parts.go what can be changed within an asset on its own.
package asset

import (
	"errors"
	"fmt"
	"time"

	"asset-registry/assetsvc/internal/record"
)

// Role is what the caller is for one asset (contract, section 2.1).
type Role string

// The roles. Owner holds the key of the asset's owner and the asset's token;
// Other is whoever has a key and is none of the rest.
const (
	Owner         Role = "owner"
	Concierge     Role = "concierge"
	Administrator Role = "administrator"
	Other         Role = "other"
)

// Status is the state of an asset (contract, section 2.1).
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

// Statuses are all states, in the order of an asset's life.
var Statuses = []Status{Draft, Pending, Verification, Active, Complete, Deleted}

// Rules are the rules as one operator has set them up.
type Rules struct {
	Types   []string       // accepted values of assetType: bounce, and its aliases
	Sandbox bool           // sandboxParameters is a field only when this is set
	Zone    *time.Location // constant offset of server timestamps, and of sent ones that name none
	Codes   CodeLists      // that the operator supplies; nil: none
}

// Asset is an asset that the rules have accepted. It is immutable.
type Asset struct {
	fields record.Object // in the order of the field model, without dateModified
}

// Decode reads what Encode wrote.
func Decode(body []byte) (Asset, error) {
	value, err := record.Parse(body)
	if err != nil {
		return Asset{}, fmt.Errorf("decode asset: %w", err)
	}
	a := Asset{}
	a.fields, _ = value.(record.Object)
	if a.ID() == "" || a.Status() == "" {
		return Asset{}, errors.New("decode asset: no object with an id and a status")
	}
	return a, nil
}

// Encode returns the asset as a JSON object in the order of the field model. It
// has no dateModified, which is the asset's position in the feed.
func (a Asset) Encode() []byte { return record.Append(nil, a.fields) }

// Numbered returns the asset with its human-readable identifier.
func (a Asset) Numbered(assetID string) Asset {
	return finish(a.fields.With("assetID", assetID))
}

// OwnedBy returns the asset as a broker's.
func (a Asset) OwnedBy(broker string) Asset {
	return Asset{a.fields.With("owner", broker)}
}

// Equal tells whether two assets do not differ.
func (a Asset) Equal(b Asset) bool { return record.Equal(a.fields, b.fields) }

// Fields returns the asset as the JSON object that Encode prints.
func (a Asset) Fields() record.Object { return a.fields }

// ID returns the asset's id, 32 lowercase hex characters.
func (a Asset) ID() string { return a.fields.Text("id") }

// AssetID returns the asset's readable identifier.
func (a Asset) AssetID() string { return a.fields.Text("assetID") }

// Owner returns the name of the broker that the asset belongs to.
func (a Asset) Owner() string { return a.fields.Text("owner") }

// Status returns the asset's state.
func (a Asset) Status() Status { return Status(a.fields.Text("status")) }

// Test tells whether the asset is in test mode.
func (a Asset) Test() bool { return a.fields.Text("mode") == "test" }

// Listed tells whether the asset stands in the feed: all but drafts do
// (contract, section 5.1).
func (a Asset) Listed() bool { return a.Status() != Draft }
