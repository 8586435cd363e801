package apikey

import (
	"context"
	"errors"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// The errors of stores that mean something to callers. Any other error of a store means that it could not
// answer, or that nobody knows whether it made a change.
var (
	ErrNotFound = errors.New("there is no such key or broker")
	ErrExists   = errors.New("a key with this id, or this key, exists already")
	ErrAudited  = errors.New("operators administer this key: revoke it with the admin API")
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
