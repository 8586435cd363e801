package authapi

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"asset-registry/shared/clientaddr"
	"asset-registry/shared/errs"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

// Classes returns the names of the request classes (package routes). A key has
// limits and counts for each of them.
func Classes() []string {
	var names []string
	for _, class := range routes.Classes() {
		names = append(names, string(class))
	}
	return names
}

// Limits are the requests that a key allows, by class (see Classes) and window
// ("1s", "1m"). The limits for all keys apply too.
type Limits map[string]map[string]int64

// Key is a valid API key.
type Key struct {
	identity.Identity
	Secret  int            // number of the secret that was sent; each rotation adds one
	Allow   []netip.Prefix // networks from which the key may be used; empty: all
	Limits  Limits
	GoodFor time.Duration // maximum time that the key stays valid; 0: no known end

	Raise     int64         // factor by which the limits of all keys are raised for this key; 0: they are not raised
	RaisedFor time.Duration // maximum time that the limits stay raised
}

// Allows reports whether the key may be used from an address.
func (k Key) Allows(addr netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return clientaddr.Contains(p, addr) }
	return len(k.Allow) == 0 || slices.ContainsFunc(k.Allow, contains)
}

// WatchKeysRequest asks which keys have changed. The answer comes when a key
// changes, or after WaitMS milliseconds.
type WatchKeysRequest struct {
	Since  string `json:"since"` // the field At of the last answer; "" at first
	WaitMS int64  `json:"wait_ms"`
}

// WatchKeysResponse lists keys that a cache must drop. It covers all changes up to
// some moment after the request came.
type WatchKeysResponse struct {
	At      string   `json:"at"`
	All     bool     `json:"all,omitempty"`     // drop all keys: Since is unknown or too long ago
	Keys    []string `json:"keys,omitempty"`    // ids
	Brokers []string `json:"brokers,omitempty"` // drop all keys of these brokers
}

// Use is the last use of a key from an address.
type Use struct {
	KeyID  string     `json:"key_id"`
	Secret int        `json:"secret"`
	Addr   netip.Addr `json:"addr"`
	Micros int64      `json:"micros"` // since the Unix epoch
}

// Count is the number of requests with a key on a day.
type Count struct {
	KeyID    string `json:"key_id"`
	Day      string `json:"day"`   // the day in UTC, such as "2026-11-21"
	Class    string `json:"class"` // see Classes
	Requests int64  `json:"requests"`
}

// ReportUsageRequest reports the use of keys. It has at most MaxReport entries in
// each list.
type ReportUsageRequest struct {
	Uses   []Use   `json:"uses"`
	Counts []Count `json:"counts"` // added to earlier counts
}

// MaxReport is the length of a list in a ReportUsageRequest.
const MaxReport = 200

// ReportUsageResponse is empty.
type ReportUsageResponse struct{}

// WatchKeys returns the keys that changed since an earlier answer. It returns as soon as a key changes, at the
// latest after the time in the argument `wait`.
func (c *Client) WatchKeys(ctx context.Context, since string, wait time.Duration) (WatchKeysResponse, error) {
	var answer WatchKeysResponse
	request := WatchKeysRequest{Since: since, WaitMS: wait.Milliseconds()}
	err := c.call(ctx, WatchKeysPath, request, &answer)
	return answer, errs.In(err, "watch keys")
}

// ReportUsage reports the use of keys.
func (c *Client) ReportUsage(ctx context.Context, r ReportUsageRequest) error {
	return errs.In(c.call(ctx, ReportUsagePath, r, &ReportUsageResponse{}), "report use of keys")
}

// Ending says what an entry of the audit log took away from a key or a broker. The asset services keep endings beside
// the assets, in a store that does not go back in time together with the store of keys. An ending has no secret and no
// hash of one.
type Ending struct {
	ID   string `json:"id"`   // HeadID, or the subject of the entry and the kind; a later ending of the id replaces it
	Seq  int64  `json:"seq"`  // number of the entry
	Hash string `json:"hash"` // hash of the entry

	Subject string            `json:"subject,omitempty"` // "key ID" or "broker NAME"
	Closed  *time.Time        `json:"closed,omitempty"`  // the key was revoked, or the broker was blocked
	Expires *time.Time        `json:"expires,omitempty"` // end of the key
	Newest  int               `json:"newest,omitempty"`  // number of the newest secret of the key
	Until   map[int]time.Time `json:"until,omitempty"`   // ends of its former secrets; others have ended already
	// Rights is true if the key lost a level, a role or an address. The registry then has to refuse the key in its
	// former state, because an ending does not say what is left.
	Rights bool `json:"rights,omitempty"`
}

// HeadID is the id of the row that names the newest entry of the audit log whose endings are kept.
const HeadID = "head"

// The maximum numbers of endings in a request, and of entries that an answer is about.
const (
	MaxEndings = 40
	MaxEntries = 20
)

// EndingsRequest tells which endings an asset service keeps, and asks for those of later entries.
type EndingsRequest struct {
	At     Ending `json:"at"`      // the kept row HeadID; zero: nothing is kept
	WaitMS int64  `json:"wait_ms"` // maximum time to wait for a later entry

	// Endings is a page of the kept endings, because the answer before said Behind. Last marks the last page.
	Endings []Ending `json:"endings,omitempty"`
	Last    bool     `json:"last,omitempty"`
}

// EndingsResponse has endings to keep, and last the new row HeadID. It has nothing if there is no later entry. Behind
// asks for all kept endings, in pages: the store of keys lacks the entry that the request names.
type EndingsResponse struct {
	Endings []Ending `json:"endings,omitempty"`
	Behind  bool     `json:"behind,omitempty"`
}

// Endings exchanges endings with the auth service.
func (c *Client) Endings(ctx context.Context, r EndingsRequest) (EndingsResponse, error) {
	var answer EndingsResponse
	err := c.call(ctx, EndingsPath, r, &answer)
	return answer, errs.In(err, "exchange endings")
}
