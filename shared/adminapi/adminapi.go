// Package adminapi has the JSON of authsvc's admin API (docs/contract.md, "Admin
// API"), for the service and its clients. It also has the hash chain of the audit
// log, which clients verify themselves.
package adminapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
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
	Name    string `json:"name"`
	Similar bool   `json:"similar,omitempty"` // accept a name that looks like another broker's
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

// Asset has the fields of an asset that the admin API shows, with their names of the public API.
type Asset struct {
	ID       string    `json:"id"`
	Number   string    `json:"assetID"` // such as UA-AR-DGF-2026-11-22-000001
	Title    string    `json:"title,omitempty"`
	Status   string    `json:"status"`
	Owner    string    `json:"owner"`          // name of its broker
	Mode     string    `json:"mode,omitempty"` // "test" for a test asset
	Modified time.Time `json:"dateModified"`
}

// FindAssetPath is the path at which asset services tell auth services of one asset.
const FindAssetPath = "/find-asset"

// Found has everything that a text names. Each list has at most MaxFound elements.
type Found struct {
	Assets  []Asset  `json:"assets"`
	Brokers []Broker `json:"brokers"`
	Keys    []Key    `json:"keys"`
	Cut     bool     `json:"cut,omitempty"`    // there is more than the lists have
	Titles  bool     `json:"titles,omitempty"` // a search service was asked for the titles of published assets
}

// MaxFound is the maximum number of assets, of brokers and of keys that a search of the admin API finds.
const MaxFound = 10

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
		{http.MethodDelete, "/brokers/:name"},
		{http.MethodGet, "/keys"},
		{http.MethodPost, "/keys"},
		{http.MethodGet, "/keys/:id"},
		{http.MethodPatch, "/keys/:id"},
		{http.MethodPost, "/keys/:id/rotate"},
		{http.MethodPost, "/keys/:id/revoke"},
		{http.MethodGet, "/keys/:id/usage"},
		{http.MethodGet, "/find"},
		{http.MethodGet, "/audit"},
		{http.MethodGet, "/audit/verify"},
	}
}

// Entry is one change in the audit log. It contains the hash of the entry before
// it. So nobody can change, remove or insert an entry without changing all later
// ones. An entry never contains a secret or a secret's hash.
type Entry struct {
	Seq       int64           `json:"seq"` // 1 for the first
	Time      time.Time       `json:"time"`
	Who       string          `json:"who"`  // id and name of the caller's key, or of the person
	From      string          `json:"from"` // the caller's address
	RequestID string          `json:"request_id,omitempty"`
	Action    string          `json:"action"`  // such as "key.rotate"
	Subject   string          `json:"subject"` // "key ID", "broker NAME", "webhook ID", "asset ID" or "file ID"
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Prev      string          `json:"prev"` // hash of the entry before, "" for the first
	Hash      string          `json:"hash"` // hash of all fields above
	Seal      string          `json:"seal"` // seal of the hash, made with the registry's secret
}

// Sum returns the hash that the entry should have: the SHA-256, in hex, of its
// JSON without hash and seal.
func (e Entry) Sum() (string, error) {
	e.Hash, e.Seal = "", ""
	text, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encode audit entry %d: %w", e.Seq, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// LogLost is the action of an entry that begins a new chain: the store went back in time, and entries are lost. The
// number of the entry is above all lost numbers. It has the hash of the last entry that is left.
const LogLost = "log.lost"

// Lost is the state of an entry with the action LogLost.
type Lost struct {
	Lost string `json:"lost"` // number and hash of the last lost entry
}

// Head is the end of a log. The zero value is the end of an empty log.
type Head struct {
	Seq  int64
	Hash string
}

// String returns "SEQ:HASH".
func (h Head) String() string { return strconv.FormatInt(h.Seq, 10) + ":" + h.Hash }

// errHead is returned for a text that is not a head.
var errHead = errors.New("the head of an audit log must have the form SEQ:HASH")

// ParseHead parses a text from Head.String.
func ParseHead(text string) (Head, error) {
	seq, hash, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	if sum, bad := hex.DecodeString(hash); err != nil || n < 0 || bad != nil || len(sum) != sha256.Size && n != 0 {
		return Head{}, errHead
	}
	return Head{n, hash}, nil
}

// Chain verifies an audit log from its first entry on.
type Chain struct {
	Head     Head     // head of the entries up to now
	Problems []string // all problems found up to now
	Lost     []string // what the entries with the action LogLost say
	known    Head     // a head from an earlier verification, which must occur again
	met      bool     // the head in the field `known` has occurred
}

// Follow returns a chain for a log that was verified before. The chain checks that the log
// still contains the known head. A log that lost its end or was replaced does not contain
// it. For the zero head, the chain does not check this.
func Follow(known Head) *Chain { return &Chain{known: known, met: known.Seq == 0} }

// Add verifies the next entry.
func (c *Chain) Add(e Entry) {
	switch {
	case e.Action == LogLost && e.Seq > c.Head.Seq && e.Prev == c.Head.Hash:
		var of Lost
		_ = json.Unmarshal(e.After, &of) // the hash covers the text, so a changed text is a problem anyway
		c.Lost = append(c.Lost, fmt.Sprintf("the store went back to entry %d and lost the entries up to %s; "+
			"entry %d begins a new chain", c.Head.Seq, of.Lost, e.Seq))
	case e.Seq != c.Head.Seq+1:
		c.fail("entry %d follows entry %d", e.Seq, c.Head.Seq)
	case e.Prev != c.Head.Hash:
		c.fail("entry %d does not have the hash of the entry before it", e.Seq)
	}
	if sum, err := e.Sum(); err != nil || sum != e.Hash {
		c.fail("entry %d is not as it was written", e.Seq)
	}
	c.Head = Head{e.Seq, e.Hash}
	if c.Head == c.known {
		c.met = true
	}
}

// End must be called after the last entry of the log. It returns all problems of the log.
func (c *Chain) End() []string {
	if !c.met {
		c.fail("entry %d, known from an earlier check, is missing or changed", c.known.Seq)
		c.met = true
	}
	return c.Problems
}

func (c *Chain) fail(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}
