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
