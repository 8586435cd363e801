package boltstore

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/errs"
)

var transferBucket = []byte("transfers") // id -> transfer

// CreateTransfer durably stores a new transfer.
func (s *Store) CreateTransfer(ctx context.Context, t token.Transfer) error {
	return s.batch(ctx, func(tx *bbolt.Tx) error { return putTransfer(tx, t) })
}

// LoadTransfer returns a transfer, or token.ErrNotFound.
func (s *Store) LoadTransfer(ctx context.Context, id string) (token.Transfer, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (token.Transfer, error) { return getTransfer(tx, id) })
}

// ClaimTransfer durably stores the result of token.Transfer.Claimed. It returns the transfer that the store
// then has, or token.ErrNotFound.
func (s *Store) ClaimTransfer(ctx context.Context, id string, c token.Claim) (token.Transfer, error) {
	return s.changeTransfer(ctx, id, func(t token.Transfer) token.Transfer { return t.Claimed(c) })
}

// SettleTransfer durably stores the result of token.Transfer.Settled. It returns the transfer that the store
// then has, or token.ErrNotFound.
func (s *Store) SettleTransfer(ctx context.Context, id string, c token.Claim, used bool) (token.Transfer, error) {
	return s.changeTransfer(ctx, id, func(t token.Transfer) token.Transfer { return t.Settled(c, used) })
}

func (s *Store) changeTransfer(
	ctx context.Context, id string, change func(token.Transfer) token.Transfer,
) (t token.Transfer, err error) {
	err = s.batch(ctx, func(tx *bbolt.Tx) error {
		before, err := getTransfer(tx, id)
		if err != nil {
			return err
		}
		if t = change(before); t == before {
			return nil
		}
		return putTransfer(tx, t)
	})
	if err != nil {
		return token.Transfer{}, err // the change may still be under way
	}
	return t, nil
}

// sweepStep is the maximum number of transfers that one call of SweepTransfers reads.
const sweepStep = 500

// SweepTransfers reads the next sweepStep transfers after the id in the argument `cursor`, and removes the expired
// ones. It returns the cursor of the next call; "" if there are no more transfers.
func (s *Store) SweepTransfers(ctx context.Context, cursor string, now time.Time) (next string, err error) {
	var due []string
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		due, next, err = dueTransfers(tx, cursor, now)
		return err
	})
	if err != nil || len(due) == 0 { // a transaction without changes would still cost a write
		return next, err
	}
	return next, s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error { return sweep(tx, due, now) })
}

func dueTransfers(tx *bbolt.Tx, cursor string, now time.Time) (due []string, next string, err error) {
	seen, c := 0, tx.Bucket(transferBucket).Cursor()
	for id, text := c.Seek([]byte(cursor)); id != nil && seen < sweepStep; id, text = c.Next() {
		if string(id) == cursor {
			continue
		}
		t, err := decoded(token.DecodeTransfer(string(id), text))
		if err != nil {
			return nil, "", err
		}
		if t.Expired(now) {
			due = append(due, t.ID)
		}
		if seen++; seen == sweepStep {
			next = t.ID
		}
	}
	return due, next, nil
}

// sweep reads the expired transfers again before it removes them: somebody may have claimed one since the first read.
func sweep(tx *bbolt.Tx, due []string, now time.Time) error {
	for _, id := range due {
		t, err := getTransfer(tx, id)
		if errors.Is(err, token.ErrNotFound) || err == nil && !t.Expired(now) {
			continue
		}
		if err == nil {
			err = tx.Bucket(transferBucket).Delete([]byte(id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func getTransfer(tx *bbolt.Tx, id string) (token.Transfer, error) {
	decode := func(text []byte) (token.Transfer, error) { return token.DecodeTransfer(id, text) }
	return get(tx, transferBucket, id, decode, token.ErrNotFound)
}

func putTransfer(tx *bbolt.Tx, t token.Transfer) error {
	text, err := t.Encode()
	if err != nil {
		return err
	}
	return tx.Bucket(transferBucket).Put([]byte(t.ID), text)
}

// EachTransfer calls the function `visit` with every transfer until visit returns an error.
func (s *Store) EachTransfer(visit func(token.Transfer) error) error {
	return each(s, transferBucket, token.DecodeTransfer, visit)
}

var recordBucket = []byte("records") // asset id -> record

// Load returns the token record of an asset, or token.ErrNotFound.
func (s *Store) Load(ctx context.Context, assetID string) (token.Record, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (token.Record, error) { return loadRecord(tx, assetID) })
}

func loadRecord(tx *bbolt.Tx, assetID string) (token.Record, error) {
	decode := func(text []byte) (token.Record, error) { return token.Decode(assetID, text) }
	return get(tx, recordBucket, assetID, decode, token.ErrNotFound)
}

// Save durably stores r unless the store has a record of the same or a newer
// generation. It returns the record that the store then has.
func (s *Store) Save(ctx context.Context, r token.Record) (token.Record, error) {
	text, err := r.Encode()
	if err != nil {
		return token.Record{}, err
	}
	var standing token.Record
	err = s.batch(ctx, func(tx *bbolt.Tx) error {
		var err error
		standing, err = loadRecord(tx, r.AssetID)
		if err == nil && standing.Generation >= r.Generation {
			return nil
		}
		if err != nil && !errors.Is(err, token.ErrNotFound) {
			return err
		}
		standing = r
		return tx.Bucket(recordBucket).Put([]byte(r.AssetID), text)
	})
	return standing, errs.In(err, "save tokens of asset %s", r.AssetID)
}

// EachRecord calls the function `visit` with every token record until visit returns an error.
func (s *Store) EachRecord(visit func(token.Record) error) error {
	return each(s, recordBucket, token.Decode, visit)
}

func each[T any](s *Store, bucket []byte, decode func(string, []byte) (T, error), visit func(T) error) error {
	return s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(id, text []byte) error {
			value, err := decoded(decode(string(id), text))
			if err != nil {
				return err
			}
			return visit(value)
		})
	})
}
