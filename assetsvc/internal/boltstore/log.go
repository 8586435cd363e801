package boltstore

import (
	"bytes"
	"context"
	"slices"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
)

// keep adds the change of a revision to the log and removes the change that is
// now older than registry.MaxLog revisions.
func (t *transaction) keep(key []byte, r registry.Record) error {
	if err := t.log.Delete(logKey(key, r.Revision-registry.MaxLog)); err != nil {
		return err
	}
	if len(r.Change) == 0 {
		return nil
	}
	return t.log.Put(logKey(key, r.Revision), append(positionKey(r.Position), r.Change...))
}

// logKey returns the log's key for a revision of an asset. The keys of one
// asset are adjacent and in the order of revisions.
func logKey(id []byte, revision int64) []byte {
	return append(bytes.Clone(id), positionKey(revision)...)
}

// Log returns the kept changes of an asset, the newest first, or
// registry.ErrNotFound.
func (s *Store) Log(ctx context.Context, id string) ([]registry.Revision, error) {
	key, ok := keyOf(id)
	if !ok {
		return nil, registry.ErrNotFound
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var kept []registry.Revision
	err := s.file.View(func(tx *bbolt.Tx) error {
		if tx.Bucket(assetBucket).Get(key) == nil {
			return registry.ErrNotFound
		}
		kept = readLog(tx, key)
		return nil
	})
	return kept, err
}

func readLog(tx *bbolt.Tx, id []byte) []registry.Revision {
	var kept []registry.Revision
	cursor := tx.Bucket(logBucket).Cursor()
	for at, value := cursor.Seek(id); bytes.HasPrefix(at, id); at, value = cursor.Next() {
		kept = append(kept, registry.Revision{
			Revision: positionOf(at[len(id):]),
			Position: positionOf(value),
			Change:   bytes.Clone(value[positionSize:]),
		})
	}
	slices.Reverse(kept)
	return kept
}
