package authapi

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

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

// Limits are how much a key may be used beside what holds for all keys: class
// of request, of Classes, to window ("1s", "1m") to requests.
type Limits map[string]map[string]int64

// Key is what there is to know of an API key that is good.
type Key struct {
	identity.Identity
	Secret  int            // which of the key's secrets was sent: rotation makes new ones
	Allow   []netip.Prefix // where it may be used from; none: everywhere
	Limits  Limits
	GoodFor time.Duration // how long at most; 0: no end is known
}

// Allows tells whether the key may be used from an address.
func (k Key) Allows(addr netip.Addr) bool {
	return len(k.Allow) == 0 || slices.ContainsFunc(k.Allow, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}

// WatchKeysRequest asks which keys have changed. The answer comes when one has,
// or when the time to wait is over.
type WatchKeysRequest struct {
	Since  string `json:"since"` // At of the answer before; "" for the first question
	WaitMS int64  `json:"wait_ms"`
}

// WatchKeysResponse tells what is no longer to be believed. It is true as of
// some moment after the question was asked.
type WatchKeysResponse struct {
	At      string   `json:"at"`
	All     bool     `json:"all,omitempty"`     // nothing is to be believed: the history is another, or too long
	Keys    []string `json:"keys,omitempty"`    // ids of keys
	Brokers []string `json:"brokers,omitempty"` // with all their keys
}

// Use is when and where from a key was last used.
type Use struct {
	KeyID  string     `json:"key_id"`
	Secret int        `json:"secret"`
	Addr   netip.Addr `json:"addr"`
	Micros int64      `json:"micros"` // since the Unix epoch
}

// Count is how often a key was used.
type Count struct {
	KeyID    string `json:"key_id"`
	Day      string `json:"day"`   // UTC, as "2026-11-21"
	Class    string `json:"class"` // of Classes
	Requests int64  `json:"requests"`
}

// ReportUsageRequest adds to what is known of the use of keys. At most
// MaxReport of each.
type ReportUsageRequest struct {
	Uses   []Use   `json:"uses"`
	Counts []Count `json:"counts"`
}

// MaxReport bounds a report.
const MaxReport = 200

// ReportUsageResponse is empty.
type ReportUsageResponse struct{}

// WatchKeys tells which keys have changed since an answer before, as soon as
// one has, or after a time of waiting.
func (c *Client) WatchKeys(ctx context.Context, since string, wait time.Duration) (WatchKeysResponse, error) {
	var answer WatchKeysResponse
	if err := c.call(ctx, WatchKeysPath, WatchKeysRequest{Since: since, WaitMS: wait.Milliseconds()}, &answer); err != nil {
		return WatchKeysResponse{}, fmt.Errorf("watch keys: %w", err)
	}
	return answer, nil
}

// ReportUsage adds to what is known of the use of keys.
func (c *Client) ReportUsage(ctx context.Context, r ReportUsageRequest) error {
	if err := c.call(ctx, ReportUsagePath, r, &ReportUsageResponse{}); err != nil {
		return fmt.Errorf("report use of keys: %w", err)
	}
	return nil
}
