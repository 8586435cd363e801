package boltstore

import (
	"context"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/identity"
)

var (
	keyBucket   = []byte("keys")      // hash -> whose it is
	keyIDBucket = []byte("key-names") // KeyID -> hash
)

// AddKey durably stores a key, or returns apikey.ErrExists.
func (s *Store) AddKey(ctx context.Context, hash string, i identity.Identity) error {
	text, err := apikey.Encode(i)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.Update(func(tx *bbolt.Tx) error {
		names, keys := tx.Bucket(keyIDBucket), tx.Bucket(keyBucket)
		if names.Get([]byte(i.KeyID)) != nil || keys.Get([]byte(hash)) != nil {
			return apikey.ErrExists
		}
		if err := names.Put([]byte(i.KeyID), []byte(hash)); err != nil {
			return err
		}
		return keys.Put([]byte(hash), text)
	})
}

// FindKey returns whose key has a hash, or apikey.ErrNotFound.
func (s *Store) FindKey(ctx context.Context, hash string) (i identity.Identity, err error) {
	if err := ctx.Err(); err != nil {
		return i, err
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
		text := tx.Bucket(keyBucket).Get([]byte(hash))
		if text == nil {
			return apikey.ErrNotFound
		}
		i, err = decoded(apikey.Decode(text))
		return err
	})
	return i, err
}

// RemoveKey durably removes a key, or returns apikey.ErrNotFound.
func (s *Store) RemoveKey(ctx context.Context, keyID string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.Update(func(tx *bbolt.Tx) error {
		names := tx.Bucket(keyIDBucket)
		hash := names.Get([]byte(keyID))
		if hash == nil {
			return apikey.ErrNotFound
		}
		if err := tx.Bucket(keyBucket).Delete(hash); err != nil {
			return err
		}
		return names.Delete([]byte(keyID))
	})
}

// EachKey calls visit with every key, until it returns an error.
func (s *Store) EachKey(visit func(hash string, i identity.Identity) error) error {
	return s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(keyBucket).ForEach(func(hash, text []byte) error {
			i, err := decoded(apikey.Decode(text))
			if err != nil {
				return err
			}
			return visit(string(hash), i)
		})
	})
}
