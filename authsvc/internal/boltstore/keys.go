package boltstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/boltfile"
)

var (
	brokerBucket = []byte("brokers")    // name -> broker
	keyBucket    = []byte("admin-keys") // id -> key
	hashBucket   = []byte("key-hashes") // hash of a secret -> id of its key
)

// Broker returns a broker, or apikey.ErrNotFound.
func (s *Store) Broker(ctx context.Context, name string) (apikey.Broker, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (apikey.Broker, error) {
		return get(tx, brokerBucket, name, apikey.DecodeBroker, apikey.ErrNotFound)
	})
}

// Brokers returns up to limit brokers in the order of their names. The first one follows the name `after`.
func (s *Store) Brokers(ctx context.Context, after string, limit int) ([]apikey.Broker, error) {
	return scan(ctx, s, brokerBucket, []byte(after+"\x00"), limit, apikey.DecodeBroker)
}

// Key returns a key, or apikey.ErrNotFound.
func (s *Store) Key(ctx context.Context, id string) (apikey.Key, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (apikey.Key, error) {
		return get(tx, keyBucket, id, apikey.DecodeKey, apikey.ErrNotFound)
	})
}

// Keys returns up to limit keys in the order of their ids. The first one follows the id `after`.
func (s *Store) Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error) {
	return scan(ctx, s, keyBucket, []byte(after+"\x00"), limit, apikey.DecodeKey)
}

// KeysBack returns up to limit keys in the reverse order of their ids. The first one precedes the id `before`. If this
// id is "", the first one is the last key.
func (s *Store) KeysBack(ctx context.Context, before string, limit int) (found []apikey.Key, err error) {
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(keyBucket).Cursor()
		id, text := cursor.Last()
		if before != "" {
			if id, _ = cursor.Seek([]byte(before)); id != nil {
				id, text = cursor.Prev()
			} else {
				id, text = cursor.Last() // all ids precede the given one
			}
		}
		for ; id != nil && len(found) < limit; id, text = cursor.Prev() {
			k, err := decoded(apikey.DecodeKey(text))
			if err != nil {
				return fmt.Errorf("read %s: %w", keyBucket, err)
			}
			found = append(found, k)
		}
		return nil
	})
	return found, err
}

// FindSecret returns the key that has a secret with this hash, or apikey.ErrNotFound. It always reads the hash, the
// key, the broker and the head, even if there is no such key.
func (s *Store) FindSecret(ctx context.Context, hash string) (f apikey.Found, err error) {
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		id := string(tx.Bucket(hashBucket).Get([]byte(hash)))
		var missing, torn error
		f.Key, missing = get(tx, keyBucket, id, apikey.DecodeKey, apikey.ErrNotFound)
		f.Broker, err = get(tx, brokerBucket, f.Key.Broker, apikey.DecodeBroker, apikey.ErrNotFound)
		if errors.Is(err, apikey.ErrNotFound) { // keys of the admin API have no broker
			err = nil
		}
		f.Head, torn = head(tx)
		return cmp.Or(torn, missing, err)
	})
	return f, err
}

// putKey stores a key, so that the key is found by its id and by each of the given hashes of its secrets.
func putKey(tx *bbolt.Tx, k apikey.Key, hashes ...string) error {
	text, err := k.Encode()
	if err != nil {
		return err
	}
	if err := tx.Bucket(keyBucket).Put([]byte(k.ID), text); err != nil {
		return err
	}
	for _, hash := range hashes {
		if hash == "" {
			continue
		}
		if err := tx.Bucket(hashBucket).Put([]byte(hash), []byte(k.ID)); err != nil {
			return err
		}
	}
	return nil
}

func putBroker(tx *bbolt.Tx, b apikey.Broker) error {
	text, err := b.Encode()
	if err != nil {
		return err
	}
	return tx.Bucket(brokerBucket).Put([]byte(b.Name), text)
}
