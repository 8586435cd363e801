package boltstore

import (
	"context"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/shared/authapi"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/errs"
)

// endingBucket has the endings of keys: id -> JSON.
var endingBucket = []byte("endings")

func decodeEnding(text []byte) (e authapi.Ending, err error) {
	if text == nil {
		return e, nil
	}
	err = json.Unmarshal(text, &e)
	return e, errs.In(err, "%w: decode ending", boltfile.ErrDamaged)
}

func (s *Store) KeepEndings(ctx context.Context, endings []authapi.Ending) error {
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(endingBucket)
		for _, e := range endings {
			standing, err := decodeEnding(bucket.Get([]byte(e.ID)))
			if err != nil {
				return err
			}
			text, err := json.Marshal(e)
			if err != nil {
				return fmt.Errorf("encode ending: %w", err)
			}
			if e.Seq <= standing.Seq {
				continue
			}
			if err := bucket.Put([]byte(e.ID), text); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) Ending(ctx context.Context, id string) (authapi.Ending, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (authapi.Ending, error) {
		return decodeEnding(tx.Bucket(endingBucket).Get([]byte(id)))
	})
}

func (s *Store) Endings(ctx context.Context, after string, limit int) ([]authapi.Ending, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) ([]authapi.Ending, error) {
		decode := func(_, text []byte) (authapi.Ending, error) { return decodeEnding(text) }
		return boltfile.Page(tx.Bucket(endingBucket), nil, after, limit, decode)
	})
}
