// Package adminapi has the JSON of authsvc's admin API (docs/contract.md, "Admin
// API"), for the service and its clients. It also has the hash chain of the audit
// log, which clients verify themselves.
package adminapi

import (
	"net/http"
	"time"
)

// Prefix starts every path of the API.
const Prefix = "/admin/v1"

// Broker is a tenant: it owns assets and has any number of keys.
type Broker struct {
	Name    string `json:"name"` // also the owner in the broker's assets; never changes
	Title   string `json:"title,omitempty"`
	Contact string `json:"contact,omitempty"`
	Blocked bool   `json:"blocked"` // no key of the broker is valid

	Raise       int64     `json:"raise,omitempty"`       // factor by which its limits are raised; 0: not raised
	RaisedUntil time.Time `json:"raised_until,omitzero"` // when the raised limits end

	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
}

// BrokerSettings are the fields of a broker that a caller may set and change.
type BrokerSettings struct {
	Title   string `json:"title"`
	Contact string `json:"contact"`
	Blocked bool   `json:"blocked"`

	Raise       int64     `json:"raise,omitempty"`
	RaisedUntil time.Time `json:"raised_until,omitzero"`
}

// NewBroker is the request to create a broker.
type NewBroker struct {
	Name string `json:"name"`
	BrokerSettings
}

// KeySettings are the fields of a key that a caller may set and change.
type KeySettings struct {
	Name string `json:"name"`

	// Role is broker, concierge or administrator. A key for this API has the role operator or auditor.
	Role string `json:"role"`

	Levels  string                      `json:"levels,omitempty"`  // accreditation levels, from 0 to 4
	Test    bool                        `json:"test"`              // valid for test assets only
	Expires *time.Time                  `json:"expires,omitempty"` // when the key stops being valid; nil: never
	Limits  map[string]map[string]int64 `json:"limits,omitempty"`  // requests by class and window, such as "1s"
	Allow   []string                    `json:"allow,omitempty"`   // addresses and networks of its users; empty for all
}

// NewKey is the request to create a key.
type NewKey struct {
	Broker string `json:"broker"` // empty for an operator or auditor
	KeySettings
}

// The states of a key.
const (
	Active  = "active"
	Expired = "expired"
	Revoked = "revoked"
	Blocked = "blocked" // its broker is blocked
)

// States returns every state of a key.
func States() []string { return []string{Active, Expired, Revoked, Blocked} }

// Key is an API key without its secret.
type Key struct {
	ID     string `json:"id"`
	Broker string `json:"broker,omitempty"`
	KeySettings
	State    string     `json:"state,omitempty"`
	Created  time.Time  `json:"created"`
	Modified time.Time  `json:"modified"`
	Revoked  *time.Time `json:"revoked,omitempty"`
	Secrets  []Secret   `json:"secrets"` // the newest first
}

// Secret describes a secret of a key. Each rotation adds one.
type Secret struct {
	Number      int        `json:"number"`
	Fingerprint string     `json:"fingerprint"` // identifies the secret without revealing it
	Created     time.Time  `json:"created"`
	Until       *time.Time `json:"until,omitempty"` // end of its grace time; nil for the current secret
	Uses        []Use      `json:"uses,omitempty"`  // the last use from each address, the newest first
}

// Use is the last use of a secret from an address.
type Use struct {
	Time time.Time `json:"time"`
	From string    `json:"from"`
}

// Rotation is the request for a new secret of a key.
type Rotation struct {
	Grace string `json:"grace"` // maximum time that former secrets stay valid, such as "24h"; "" or "0": no time
}

// Day is the number of requests with a key on a day in UTC, by class.
type Day struct {
	Day    string           `json:"day"`
	Counts map[string]int64 `json:"counts"`
}

// Response is the body of every successful answer.
type Response[T any] struct {
	Data   T      `json:"data"`
	Secret string `json:"secret,omitempty"` // secret of a new key, or new secret of a key; no later answer has it
	Next   string `json:"next,omitempty"`   // the parameter "after" for the next page; empty on the last page

	Warnings []string `json:"warnings,omitempty"` // why the change, which is made, may be lost with the store
}

// Request is the body of every request that has one.
type Request[T any] struct {
	Data T `json:"data"`
}

// Verification is the result of the server's check of the audit log.
type Verification struct {
	Entries  int64    `json:"entries"`
	Head     string   `json:"head"`     // hash of the last entry
	Problems []string `json:"problems"` // empty if the log is intact

	// Lost tells where the store went back in time and a new chain begins. This is no problem of the log.
	Lost []string `json:"lost,omitempty"`
}

// Route is one method of one path of the admin API.
type Route struct {
	Method  string
	Pattern string // the path after Prefix, as gin writes it
}

// Routes returns every route that needs an operator's key.
func Routes() []Route {
	return []Route{
		{http.MethodGet, "/brokers"},
		{http.MethodPost, "/brokers"},
		{http.MethodGet, "/brokers/:name"},
		{http.MethodPatch, "/brokers/:name"},
		{http.MethodGet, "/keys"},
		{http.MethodPost, "/keys"},
		{http.MethodGet, "/keys/:id"},
		{http.MethodPatch, "/keys/:id"},
		{http.MethodPost, "/keys/:id/rotate"},
		{http.MethodPost, "/keys/:id/revoke"},
		{http.MethodGet, "/keys/:id/usage"},
		{http.MethodGet, "/audit"},
		{http.MethodGet, "/audit/verify"},
	}
}
