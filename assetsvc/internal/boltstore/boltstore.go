// Package boltstore keeps assets and their feed in one bbolt file.
//
// One goroutine writes. It takes all the writes that wait, applies them in one
// transaction and makes that durable with one fsync, while the next writes
// gather: a batch is as large as the load is high, and nobody waits for a
// timer. Positions are given inside the transaction, so the order of commits
// is the order of positions, and a reader's transaction shows a prefix of the
// feed. That is the whole proof of F1 to F3.
//
// The feed is two buckets, of real and of test assets, from position to id.
// bbolt is a B+tree, so a page costs a seek and its entries, however many
// assets there are; pages are filled to the brim, since keys only ever come at
// the end.
package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
)

// maxBatch is how many writes go into one transaction at most.
const maxBatch = 1024

// format names what the file holds and how.
const format = "asset-registry assets 2"

// firstFormat had no checksums of records. A version that knows no other must
// not read records that have one.
const firstFormat = "asset-registry assets 1"

var (
	stateBucket  = []byte("state")
	numberBucket = []byte("numbers") // day -> newest number given to an asset
	assetBucket  = []byte("assets")  // id -> record
	realBucket   = []byte("feed")    // position -> id
	testBucket   = []byte("feed-test")
	logBucket    = []byte("log")    // id and revision -> position and change
	censusBucket = []byte("census") // state -> number of assets

	lastKey = []byte("last") // newest position, in the state
)

// Options of a store.
type Options struct {
	Now     func() time.Time // wall clock that positions follow
	Meter   metric.Meter     // measures the store; nil: nothing does
	Secrets [][]byte         // the file belongs to one of these, and from now on to the first; none: to any
	Log     *slog.Logger     // nil: nothing is logged
}

// Store is a registry.Store in one file.
type Store struct {
	file   *boltfile.File
	now    func() time.Time
	queue  chan *write
	closed chan struct{} // no write is taken any more
	done   chan struct{} // the writer has ended
	once   sync.Once
	err    error // of closing

	numbers numbers
	silence func() error // ends what is measured
}

func fileOptions(secrets [][]byte, log *slog.Logger) boltfile.Options {
	buckets := [][]byte{stateBucket, numberBucket, assetBucket, realBucket, testBucket, logBucket, censusBucket}
	return boltfile.Options{Format: format, Older: []string{firstFormat}, Buckets: buckets, Secrets: secrets, Log: log}
}

// Open opens the file at path, or makes it. It fails as boltfile.Open does.
func Open(path string, o Options) (*Store, error) {
	file, err := boltfile.Open(path, fileOptions(o.Secrets, o.Log))
	if err != nil {
		return nil, err
	}
	s := &Store{
		file:   file,
		now:    o.Now,
		queue:  make(chan *write, maxBatch),
		closed: make(chan struct{}),
		done:   make(chan struct{}),
	}
	if err := s.recount(); err != nil {
		return nil, errors.Join(fmt.Errorf("count the assets: %w", err), file.Close())
	}
	if s.silence, err = s.measure(o.Meter); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go s.run()
	return s, nil
}

// Get returns an asset, registry.ErrNotFound, or registry.ErrLarge.
func (s *Store) Get(ctx context.Context, id string, most int) (r registry.Record, err error) {
	key, ok := keyOf(id)
	if !ok {
		return r, registry.ErrNotFound
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(assetBucket).Get(key)
		if value == nil {
			return registry.ErrNotFound
		}
		r, err = decode(id, value, most)
		return err
	})
	return r, err
}

// NextNumber returns a number for an asset created on day.
func (s *Store) NextNumber(ctx context.Context, day string) (int, error) {
	return s.numbers.next(day, func() (number int, err error) {
		err = s.file.View(func(tx *bbolt.Tx) error {
			if value := tx.Bucket(numberBucket).Get([]byte(day)); value != nil {
				number = int(positionOf(value))
			}
			return nil
		})
		return number, err
	})
}

// Ready returns nil when a change can be stored now (boltfile.File.Ready).
func (s *Store) Ready(ctx context.Context) error { return s.file.Ready(ctx) }

// Close finishes the writes that were taken, refuses others, and closes the file.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closed)
		<-s.done
		s.err = errors.Join(s.silence(), s.file.Close())
	})
	return s.err
}
