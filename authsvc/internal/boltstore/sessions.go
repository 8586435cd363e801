package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"
)

// sessionBucket has the console's sessions that were ended. It maps the id of a session to the time when the
// session may be forgotten, in µs since the Unix epoch.
var sessionBucket = []byte("ended-sessions")

// EndSession durably ends a session of the console. It also removes ended sessions that may be forgotten now.
func (s *Store) EndSession(ctx context.Context, id string, forget time.Duration) error {
	now := time.Now()
	return s.batch(ctx, func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(sessionBucket)
		var old [][]byte
		err := bucket.ForEach(func(key, until []byte) error {
			if len(until) != 8 || int64(binary.BigEndian.Uint64(until)) < now.UnixMicro() {
				old = append(old, bytes.Clone(key))
			}
			return nil
		})
		for _, key := range old {
			if err == nil {
				err = bucket.Delete(key)
			}
		}
		if err != nil {
			return err
		}
		return bucket.Put([]byte(id), number(now.Add(forget).UnixMicro()))
	})
}

// SessionEnded reports whether a session of the console was ended.
func (s *Store) SessionEnded(ctx context.Context, id string) (ended bool, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		ended = tx.Bucket(sessionBucket).Get([]byte(id)) != nil
		return nil
	})
	return ended, err
}
