// Package admin administers brokers and their API keys: who may use the
// registry, how much and from where, and who has changed that. It also tells
// the gateways whose a key is, and what they must no longer believe.
package admin

import (
	"context"
	"errors"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// What a Store returns instead of doing what it is asked.
var (
	ErrNotFound = errors.New("there is no such key or broker")
	ErrStale    = errors.New("something else was changed meanwhile")
)

// Change is one change with its entry in the audit log.
type Change struct {
	Broker  *apikey.Broker // the broker as it is to be, or
	Key     *apikey.Key    // the key
	NewHash string         // hash of a secret that the key did not have before; "" if none
	Entry   adminapi.Entry
}

// Store keeps brokers, keys, the audit log and usage, several processes' at
// the same time. It is safe for concurrent use. Any error but ErrNotFound and
// ErrStale means that it could not answer, or that a change may or may not have
// been made.
type Store interface {
	// Head returns where the audit log ends. It sees every Commit that has returned.
	Head(ctx context.Context) (adminapi.Head, error)
	// Commit makes a change and appends its entry, durably, both or neither, if
	// the log still ends at head; otherwise it returns ErrStale. Who read the
	// head before all else has then changed what was there.
	Commit(ctx context.Context, head adminapi.Head, c Change) error
	// Entries returns up to limit entries that follow number after, in order.
	Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error)

	// Broker returns a broker, or ErrNotFound.
	Broker(ctx context.Context, name string) (apikey.Broker, error)
	// Brokers returns up to limit brokers whose names follow after, in order.
	Brokers(ctx context.Context, after string, limit int) ([]apikey.Broker, error)
	// Key returns a key, or ErrNotFound.
	Key(ctx context.Context, id string) (apikey.Key, error)
	// Keys returns up to limit keys whose ids follow after, in order.
	Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error)
	// FindSecret returns the key that has, or had, a secret of this hash, with its
	// broker, the zero one for a key of none; or ErrNotFound.
	FindSecret(ctx context.Context, hash string) (apikey.Key, apikey.Broker, error)

	// AddUsage adds to the counts, and keeps uses if they are among the newest
	// MaxUses of their secret, one for each address.
	AddUsage(ctx context.Context, uses []authapi.Use, counts []authapi.Count) error
	// Uses returns the last uses of each key by number of its secret, the newest first.
	Uses(ctx context.Context, ids []string) (map[string]map[int][]adminapi.Use, error)
	// Counts returns a key's counts of given days, those that have any.
	Counts(ctx context.Context, id string, days []string) ([]adminapi.Day, error)

	// Reseal stores entries of the log again, durably, with other seals. The log
	// ends where it did.
	Reseal(ctx context.Context, entries []adminapi.Entry) error
	// Restore stores what Commit has stored elsewhere. It may be repeated.
	Restore(ctx context.Context, c Change, hashes []string) error
}

// MaxUses is how many last uses of a secret are kept.
const MaxUses = 8

// UsageDays is how long counts are kept at least.
const UsageDays = 400
