package boltstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/token"
)

var recordBucket = []byte("records") // asset id -> record

// Load returns the token record of an asset, or token.ErrNotFound.
func (s *Store) Load(ctx context.Context, assetID string) (r token.Record, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		r, err = loadRecord(tx, assetID)
		return err
	})
	return r, err
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
	if err != nil {
		return token.Record{}, fmt.Errorf("save tokens of asset %s: %w", r.AssetID, err)
	}
	return standing, nil
}

// EachRecord calls the function `visit` with every token record until visit returns an error.
func (s *Store) EachRecord(visit func(token.Record) error) error {
	return s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(recordBucket).ForEach(func(id, text []byte) error {
			r, err := decoded(token.Decode(string(id), text))
			if err != nil {
				return err
			}
			return visit(r)
		})
	})
}
