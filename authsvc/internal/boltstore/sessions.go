package boltstore

import (
	"bytes"
	"context"
	"time"

	"go.etcd.io/bbolt"
)

// sessionBucket has the console's sessions that were ended. It maps the id of a session to the time when the
// session may be forgotten, in µs since the Unix epoch.
var sessionBucket = []byte("ended-sessions")

// maxEnded is the number of ended sessions that are kept. A clock forgets none: a clock that was once ahead would open
// sessions again.
const maxEnded = 10_000

// EndSession durably ends a session of the console. If there are too many ended sessions, it removes the one that may
// be forgotten first.
func (s *Store) EndSession(ctx context.Context, id string, forget time.Duration) error {
	now := time.Now()
	return s.batch(ctx, func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(sessionBucket)
		var first, least []byte
		kept := 0
		err := bucket.ForEach(func(key, until []byte) error {
			kept++
			if first == nil || bytes.Compare(until, least) < 0 {
				first, least = bytes.Clone(key), bytes.Clone(until)
			}
			return nil
		})
		if err == nil && kept >= maxEnded && bucket.Get([]byte(id)) == nil {
			err = bucket.Delete(first)
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
