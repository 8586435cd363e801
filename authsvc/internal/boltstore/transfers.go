package boltstore

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/token"
)

var transferBucket = []byte("transfers") // id -> transfer

// CreateTransfer durably stores a new transfer.
func (s *Store) CreateTransfer(ctx context.Context, t token.Transfer) error {
	return s.batch(ctx, func(tx *bbolt.Tx) error { return putTransfer(tx, t) })
}

// LoadTransfer returns a transfer, or token.ErrNotFound.
func (s *Store) LoadTransfer(ctx context.Context, id string) (t token.Transfer, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		t, err = getTransfer(tx, id)
		return err
	})
	return t, err
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
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		due, next, err = dueTransfers(tx, cursor, now)
		return err
	})
	if err != nil || len(due) == 0 { // a transaction without changes would still cost a write
		return next, err
	}
	return next, s.update(ctx, func(tx *bbolt.Tx) error { return sweep(tx, due, now) })
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
	return s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(transferBucket).ForEach(func(id, text []byte) error {
			t, err := decoded(token.DecodeTransfer(string(id), text))
			if err != nil {
				return err
			}
			return visit(t)
		})
	})
}
