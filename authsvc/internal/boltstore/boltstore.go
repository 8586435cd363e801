// Package boltstore keeps token records, transfers and API keys in one bbolt file.
package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/boltfile"
)

// format names what the file holds and how.
const format = "asset-registry tokens 1"

var (
	recordBucket   = []byte("records")   // asset id -> record
	transferBucket = []byte("transfers") // id -> transfer
)

// Store is a token.Store in one file.
type Store struct {
	file    *boltfile.File
	silence func() error // ends what is measured
}

// Options of a store. The zero value will do.
type Options struct {
	Secrets [][]byte     // the file belongs to one of these, and from now on to the first; none: to any
	Log     *slog.Logger // nil: nothing is logged
}

func (o Options) file() boltfile.Options {
	buckets := append(adminBuckets(), recordBucket, transferBucket, keyBucket, keyIDBucket)
	return boltfile.Options{Format: format, Buckets: buckets, Secrets: o.Secrets, Log: o.Log}
}

// Open opens the file at path, or makes it. It fails as boltfile.Open does.
func Open(path string, o Options) (*Store, error) {
	file, err := boltfile.Open(path, o.file())
	if err != nil {
		return nil, err
	}
	return &Store{file, func() error { return nil }}, nil
}

// Measure tells a meter of the file until Close.
func (s *Store) Measure(meter metric.Meter) error {
	silence, err := s.file.Measure(meter, "tokens")
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
	err = s.file.View(func(tx *bbolt.Tx) error {
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
	return decoded(token.Decode(assetID, text))
}

// decoded passes on what was decoded; what could not be is damage of the file.
func decoded[T any](value T, err error) (T, error) {
	if err != nil {
		err = fmt.Errorf("%w: %w", boltfile.ErrDamaged, err)
	}
	return value, err
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
	err = s.file.Batch(func(tx *bbolt.Tx) error {
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
	return s.file.Batch(func(tx *bbolt.Tx) error { return putTransfer(tx, t) })
}

// LoadTransfer returns a transfer, or token.ErrNotFound.
func (s *Store) LoadTransfer(ctx context.Context, id string) (t token.Transfer, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
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
	err = s.file.Batch(func(tx *bbolt.Tx) error {
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
	err = s.file.View(func(tx *bbolt.Tx) error {
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
	return next, s.file.Update(func(tx *bbolt.Tx) error { return sweep(tx, due, now, end) })
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
	return decoded(token.DecodeTransfer(id, text))
}

func putTransfer(tx *bbolt.Tx, t token.Transfer) error {
	text, err := t.Encode()
	if err != nil {
		return err
	}
	return tx.Bucket(transferBucket).Put([]byte(t.ID), text)
}

// Ready returns nil when a change can be stored now (boltfile.File.Ready).
func (s *Store) Ready(ctx context.Context) error { return s.file.Ready(ctx) }

// Close waits for writes under way and closes the file.
func (s *Store) Close() error { return errors.Join(s.silence(), s.file.Close()) }
