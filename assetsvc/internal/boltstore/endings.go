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

func (s *Store) Ending(ctx context.Context, id string) (e authapi.Ending, err error) {
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		e, err = decodeEnding(tx.Bucket(endingBucket).Get([]byte(id)))
		return err
	})
	return e, err
}

func (s *Store) Endings(ctx context.Context, after string, limit int) (found []authapi.Ending, err error) {
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(endingBucket).Cursor()
		for id, text := cursor.Seek([]byte(after + "\x00")); id != nil && len(found) < limit; id, text = cursor.Next() {
			e, err := decodeEnding(text)
			if err != nil {
				return err
			}
			found = append(found, e)
		}
		return nil
	})
	return found, err
}
