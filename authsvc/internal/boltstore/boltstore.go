// Package boltstore keeps token records, transfers, API keys and the audit log in
// one bbolt file.
package boltstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/boltfile"
)

// format names the contents of the file and their encoding.
const format = "asset-registry tokens 3"

// Store is the store of the auth service in one file. It is safe for concurrent use.
type Store struct {
	file    *boltfile.File
	silence func() // removes the metrics
	run     string // a name that no other opening of a file has
}

// Options of a store. All fields may be zero.
type Options struct {
	Secrets [][]byte     // the file must belong to one of them; Open makes it belong to the first; nil: not checked
	Log     *slog.Logger // nil: nothing is logged
}

func (o Options) file() boltfile.Options {
	buckets := [][]byte{
		recordBucket, transferBucket, brokerBucket, keyBucket, hashBucket, auditBucket, countBucket, useBucket,
	}
	return boltfile.Options{
		Format: format, Buckets: buckets, Added: [][]byte{sessionBucket, toldBucket}, Secrets: o.Secrets, Log: o.Log,
	}
}

// Open opens the file at path, or creates it. It fails as boltfile.Open does.
func Open(path string, o Options) (*Store, error) {
	file, err := boltfile.Open(path, o.file())
	if err != nil {
		return nil, err
	}
	return &Store{file, func() {}, rand.Text()}, nil
}

// Measure adds the metrics of the file to a meter, until Close.
func (s *Store) Measure(meter metric.Meter) { s.silence = s.file.Measure(meter, "tokens") }

// Snapshot writes a consistent copy of the file (boltfile.File.Snapshot).
func (s *Store) Snapshot(to func(size int64) (io.Writer, error)) error { return s.file.Snapshot(to) }

// Ready returns nil if the store can make a change now (boltfile.File.Ready).
func (s *Store) Ready(ctx context.Context) error { return s.file.Ready(ctx) }

// Close waits for writes in progress and closes the file.
func (s *Store) Close() error {
	s.silence()
	return s.file.Close()
}

// batch makes a change in a transaction that it may share with other changes. The change may run more than
// once.
func (s *Store) batch(ctx context.Context, change func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.Batch(ctx, change)
}

// decoded returns its arguments. If a value could not be decoded, the file is damaged, and the error has the
// cause boltfile.ErrDamaged.
func decoded[T any](value T, err error) (T, error) {
	if err != nil {
		err = fmt.Errorf("%w: %w", boltfile.ErrDamaged, err)
	}
	return value, err
}

// get decodes the value of a key. If the bucket lacks the key, it returns the error in its last argument.
func get[T any](tx *bbolt.Tx, bucket []byte, key string, decode func([]byte) (T, error), missing error) (T, error) {
	text := tx.Bucket(bucket).Get([]byte(key))
	if text == nil {
		var none T
		return none, missing
	}
	return decoded(decode(text))
}

// scan decodes up to limit values of a bucket, beginning at the key in the argument `from`.
func scan[T any](
	ctx context.Context, s *Store, bucket, from []byte, limit int, decode func([]byte) (T, error),
) (found []T, err error) {
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucket).Cursor()
		for key, text := cursor.Seek(from); key != nil && len(found) < limit; key, text = cursor.Next() {
			value, err := decoded(decode(text))
			if err != nil {
				return fmt.Errorf("read %s: %w", bucket, err)
			}
			found = append(found, value)
		}
		return nil
	})
	return found, err
}

// sessionBucket has the console's sessions. It maps the id of a session to the time when the session may be forgotten,
// in µs since the Unix epoch, and behind it the text that is kept of the session. An ended session has no text.
var sessionBucket = []byte("ended-sessions")

// maxSessions is the number of sessions that are kept. A clock forgets none: a clock that was once ahead would open
// sessions again.
const maxSessions = 10_000

// putSession stores a session. If there are too many, it removes the one that may be forgotten first.
func putSession(tx *bbolt.Tx, id, text string, until time.Time) error {
	bucket := tx.Bucket(sessionBucket)
	var first, least []byte
	kept := 0
	err := bucket.ForEach(func(key, value []byte) error {
		kept++
		if first == nil || bytes.Compare(value, least) < 0 {
			first, least = bytes.Clone(key), bytes.Clone(value)
		}
		return nil
	})
	if err == nil && kept >= maxSessions && bucket.Get([]byte(id)) == nil {
		err = bucket.Delete(first)
	}
	if err != nil {
		return err
	}
	return bucket.Put([]byte(id), append(number(until.UnixMicro()), text...))
}

// EndSession durably ends a session of the console, and forgets what is kept of it.
func (s *Store) EndSession(ctx context.Context, id string, forget time.Duration) error {
	until := time.Now().Add(forget)
	return s.batch(ctx, func(tx *bbolt.Tx) error { return putSession(tx, id, "", until) })
}

// SessionEnded reports whether a session of the console was ended.
func (s *Store) SessionEnded(ctx context.Context, id string) (bool, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (bool, error) {
		return len(tx.Bucket(sessionBucket).Get([]byte(id))) == len(number(0)), nil
	})
}

// KeepSession implements console.Sessions.
func (s *Store) KeepSession(ctx context.Context, id, was, text string, forget time.Duration) (kept bool, err error) {
	until := time.Now().Add(forget)
	err = s.batch(ctx, func(tx *bbolt.Tx) error {
		value := tx.Bucket(sessionBucket).Get([]byte(id))
		if kept = value == nil && was == "" || was != "" && textOf(value) == was; !kept {
			return nil
		}
		return putSession(tx, id, text, until)
	})
	return kept && err == nil, err
}

// KeptSession implements console.Sessions.
func (s *Store) KeptSession(ctx context.Context, id string) (string, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (string, error) {
		return textOf(tx.Bucket(sessionBucket).Get([]byte(id))), nil
	})
}

// textOf returns the text in a value of sessionBucket, or "".
func textOf(value []byte) string { return string(value[min(len(value), len(number(0))):]) }
