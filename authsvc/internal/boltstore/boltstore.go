// Package boltstore keeps token records, transfers and API keys in one bbolt file.
package boltstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/boltfile"
)

// batchDelay is how long a write waits for others to share its fsync with.
const batchDelay = time.Millisecond

// format names what the file holds and how.
const format = "asset-registry tokens 1"

var (
	recordBucket   = []byte("records")   // asset id -> record
	transferBucket = []byte("transfers") // id -> transfer
)

// Store is a token.Store in one file.
type Store struct {
	db      *bbolt.DB
	silence func() error // ends what is measured
}

// Open opens the file at path, or makes it. It fails when another process has
// it open, and when it is not a file of this store's.
func Open(path string) (*Store, error) {
	db, err := boltfile.Open(path, format, append(adminBuckets(), recordBucket, transferBucket, keyBucket, keyIDBucket)...)
	if err != nil {
		return nil, err
	}
	db.MaxBatchDelay = batchDelay
	return &Store{db, func() error { return nil }}, nil
}

// Measure tells a meter of the file until Close.
func (s *Store) Measure(meter metric.Meter) error {
	silence, err := boltfile.Measure(meter, "tokens", s.db)
	if err == nil {
		s.silence = silence
	}
	return err
}

// Load returns an asset's record, or token.ErrNotFound.
func (s *Store) Load(ctx context.Context, assetID string) (r token.Record, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		r, err = load(tx, assetID)
		return err
	})
	return r, err
}

func load(tx *bbolt.Tx, assetID string) (token.Record, error) {
	text := tx.Bucket(recordBucket).Get([]byte(assetID))
	if text == nil {
		return token.Record{}, token.ErrNotFound
	}
	return token.Decode(assetID, text)
}

// Save stores r durably unless there is a record of the same or a newer
// generation, and returns the one that stands afterwards.
func (s *Store) Save(ctx context.Context, r token.Record) (token.Record, error) {
	if err := ctx.Err(); err != nil {
		return token.Record{}, err
	}
	text, err := r.Encode()
	if err != nil {
		return token.Record{}, err
	}
	var standing token.Record
	err = s.db.Batch(func(tx *bbolt.Tx) error {
		var err error
		standing, err = load(tx, r.AssetID)
		if err == nil && standing.Generation >= r.Generation {
			return nil
		}
		if err != nil && !errors.Is(err, token.ErrNotFound) {
			return err
		}
		standing = r
		return tx.Bucket(recordBucket).Put([]byte(r.AssetID), text)
	})
	if err != nil {
		return token.Record{}, fmt.Errorf("save tokens of asset %s: %w", r.AssetID, err)
	}
	return standing, nil
}

// CreateTransfer stores a new transfer durably.
func (s *Store) CreateTransfer(ctx context.Context, t token.Transfer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.db.Batch(func(tx *bbolt.Tx) error { return putTransfer(tx, t) })
}

// LoadTransfer returns a transfer, or token.ErrNotFound.
func (s *Store) LoadTransfer(ctx context.Context, id string) (t token.Transfer, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		t, err = getTransfer(tx, id)
		return err
	})
	return t, err
}

// ClaimTransfer durably sets a transfer's asset and date, unless it has an
// asset, and returns it as it stands afterwards, or token.ErrNotFound.
func (s *Store) ClaimTransfer(ctx context.Context, id, assetID string, date int64) (t token.Transfer, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	err = s.db.Batch(func(tx *bbolt.Tx) error {
		var err error
		if t, err = getTransfer(tx, id); err != nil || t.AssetID != "" {
			return err
		}
		t.AssetID, t.Date, t.Expires = assetID, date, 0
		return putTransfer(tx, t)
	})
	return t, err
}

// sweepStep is how many transfers a sweep looks at in one transaction.
const sweepStep = 500

// SweepTransfers looks at the transfers that follow the id in cursor, removes
// those that have expired, and sets the end of unclaimed ones that have none. It
// returns the last id, "" if none follow.
func (s *Store) SweepTransfers(ctx context.Context, cursor string, now, end time.Time) (next string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	var due []string
	err = s.db.View(func(tx *bbolt.Tx) error {
		seen, c := 0, tx.Bucket(transferBucket).Cursor()
		for id, text := c.Seek([]byte(cursor)); id != nil && seen < sweepStep; id, text = c.Next() {
			if string(id) == cursor {
				continue
			}
			t, err := token.DecodeTransfer(string(id), text)
			if err != nil {
				return err
			}
			if t.Expired(now) || t.AssetID == "" && t.Expires == 0 {
				due = append(due, t.ID)
			}
			if seen++; seen == sweepStep {
				next = t.ID
			}
		}
		return nil
	})
	if err != nil || len(due) == 0 { // else there is nothing to write
		return next, err
	}
	return next, s.db.Update(func(tx *bbolt.Tx) error { return sweep(tx, due, now, end) })
}

// sweep removes or dates transfers that were due when they were looked at.
func sweep(tx *bbolt.Tx, due []string, now, end time.Time) error {
	for _, id := range due {
		t, err := getTransfer(tx, id)
		switch {
		case errors.Is(err, token.ErrNotFound) || err == nil && t.AssetID != "":
			continue // somebody has claimed it meanwhile
		case err == nil && t.Expired(now):
			err = tx.Bucket(transferBucket).Delete([]byte(id))
		case err == nil && t.Expires == 0:
			t.Expires = end.UnixMicro()
			err = putTransfer(tx, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func getTransfer(tx *bbolt.Tx, id string) (token.Transfer, error) {
	text := tx.Bucket(transferBucket).Get([]byte(id))
	if text == nil {
		return token.Transfer{}, token.ErrNotFound
	}
	return token.DecodeTransfer(id, text)
}

func putTransfer(tx *bbolt.Tx, t token.Transfer) error {
	text, err := t.Encode()
	if err != nil {
		return err
	}
	return tx.Bucket(transferBucket).Put([]byte(t.ID), text)
}

// Ready returns nil while the file is open.
func (s *Store) Ready(context.Context) error {
	return s.db.View(func(*bbolt.Tx) error { return nil })
}

// Close waits for writes under way and closes the file.
func (s *Store) Close() error { return errors.Join(s.silence(), s.db.Close()) }
