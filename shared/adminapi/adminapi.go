// Package adminapi is the wire between the admin API of authsvc and its
// clients, and the chain of its audit log, which a client checks by itself.
package adminapi

import "time"

// Prefix starts the path of every call.
const Prefix = "/admin/v1"

// Broker is a tenant: the owner of assets, with any number of keys.
type Broker struct {
	Name     string    `json:"name"` // what assets have as their owner; never changes
	Title    string    `json:"title,omitempty"`
	Contact  string    `json:"contact,omitempty"`
	Blocked  bool      `json:"blocked"` // none of its keys is good
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
}

// BrokerSettings are what may be said of a broker when it is made and changed.
type BrokerSettings struct {
	Title   string `json:"title"`
	Contact string `json:"contact"`
	Blocked bool   `json:"blocked"`
}

// NewBroker asks for a broker.
type NewBroker struct {
	Name string `json:"name"`
	BrokerSettings
}

// KeySettings are what may be said of a key when it is made and changed.
type KeySettings struct {
	Name    string                      `json:"name"`
	Role    string                      `json:"role"`              // broker, concierge, administrator; operator, auditor: of this API
	Levels  string                      `json:"levels,omitempty"`  // accreditation levels, of 0 to 4
	Test    bool                        `json:"test"`              // good for test assets only
	Expires *time.Time                  `json:"expires,omitempty"` // from when on the key is no good
	Limits  map[string]map[string]int64 `json:"limits,omitempty"`  // class of request -> window ("1s") -> requests
	Allow   []string                    `json:"allow,omitempty"`   // addresses and networks it may be used from; none: all
}

// NewKey asks for a key.
type NewKey struct {
	Broker string `json:"broker"` // none for an operator or auditor
	KeySettings
}

// The states of a key.
const (
	Active  = "active"
	Expired = "expired"
	Revoked = "revoked"
	Blocked = "blocked" // its broker is
)

// States returns every state of a key.
func States() []string { return []string{Active, Expired, Revoked, Blocked} }

// Key is what may be known of an API key: all but its secret.
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

// Secret is one of the secrets that a key has had: one more with each rotation.
type Secret struct {
	Number      int        `json:"number"`
	Fingerprint string     `json:"fingerprint"` // tells secrets apart, and nothing of them
	Created     time.Time  `json:"created"`
	Until       *time.Time `json:"until,omitempty"` // end of its grace; none: it lasts as long as the key
	Uses        []Use      `json:"uses,omitempty"`  // its last ones, the newest first, one for each address
}

// Use is when a secret was last used from an address.
type Use struct {
	Time time.Time `json:"time"`
	From string    `json:"from"`
}

// Rotation asks for a new secret of a key.
type Rotation struct {
	Grace string `json:"grace"` // how long the former secret stays good ("24h"); "" or "0": no longer
}

// Day is how often a key was used on a day (UTC), by class of request.
type Day struct {
	Day    string           `json:"day"`
	Counts map[string]int64 `json:"counts"`
}

// Response is what every call answers with.
type Response[T any] struct {
	Data   T      `json:"data"`
	Secret string `json:"secret,omitempty"` // a new key's, shown this once
	Next   string `json:"next,omitempty"`   // what to send as "after" for the next page; none: this was the last
}

// Request is the body of every call that has one.
type Request[T any] struct {
	Data T `json:"data"`
}

// Verification is what the server finds when it checks the audit log.
type Verification struct {
	Entries  int64    `json:"entries"`
	Head     string   `json:"head"`     // hash of the last entry
	Problems []string `json:"problems"` // none: all is as it should be
}
