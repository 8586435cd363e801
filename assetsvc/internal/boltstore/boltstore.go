// Package boltstore keeps assets and their feed in one bbolt file.
//
// One goroutine writes. It takes all waiting writes, applies them in one transaction, and makes them durable with
// one fsync. Meanwhile the next writes queue up. So batches grow with the load, and no write waits for a timer.
//
// The store assigns positions inside the transaction. So transactions commit in the order of their positions, and a
// read transaction shows the feed up to a position, without gaps. Therefore the promises F1 to F3 of registry.Store
// hold.
//
// The record is one bucket that maps a position to a change. Each transaction writes the changes together with
// their assets, so the promises R1 and R2 hold too.
//
// The lists of brokers and the references are further buckets (owners.go, references.go).
//
// The feed is two buckets that map a position to an id: one for real assets and one for test assets. bbolt is a
// B+tree, so a page of the feed costs one seek and the reads of its entries, for any number of assets. New keys
// come only at the end of the feeds and of the record, so bbolt fills their pages completely.
package boltstore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
)

// maxBatch is the largest number of writes in one transaction.
const maxBatch = 1024

// format is the name of the file's format. The format says which buckets the file has, and how they are encoded.
const format = "asset-registry assets 5"

var (
	stateBucket   = []byte("state")
	numberBucket  = []byte("numbers") // day -> newest number given to an asset
	assetBucket   = []byte("assets")  // id -> record
	realBucket    = []byte("feed")    // position -> id
	testBucket    = []byte("feed-test")
	changeBucket  = []byte("changes") // position -> change
	historyBucket = []byte("history") // id and position of a change -> an empty value
	tileBucket    = []byte("tiles")   // level and index of a full part of the public log -> its data
	censusBucket  = []byte("census")  // state -> number of assets
	brokerBucket  = []byte("brokers") // broker, a 0 byte and position -> id and facts (owners.go)

	referenceBucket = []byte("references") // key of a reference -> id (references.go)

	lastKey = []byte("last") // in stateBucket: the newest position
)

// Options configure a store. Now is required; the zero values of the others work.
type Options struct {
	Now     func() time.Time // this machine's clock; positions are times of this clock
	Meter   metric.Meter     // gets the store's metrics; nil: no metrics
	Secrets [][]byte         // the secrets that the file may belong to, the current one first (boltfile.Options)
	Log     *slog.Logger     // nil: no log

	// Owner returns the owner of an asset. Open calls it to make the index of brokers, if the file has no complete
	// one. If Owner is nil, Open makes no index, and the store then has no lists of brokers.
	Owner func(registry.Record) (string, error)

	// Changing is called with the ids of assets before they are written. It returns a function, which is called
	// when no write of that batch can happen any more. Changing may be nil.
	Changing func(ids []string) (done func())
}

// Store implements registry.Store on one file. It also stores the public log and webhooks. It is safe for
// concurrent use.
type Store struct {
	logFile
	now    func() time.Time
	told   func(ids []string) (done func()) // Options.Changing
	queue  chan *write
	closed chan struct{} // Close closes this channel; afterwards the store accepts no new write
	done   chan struct{} // closed when the writing goroutine has ended
	once   sync.Once
	err    error // result of the first Close

	indexed bool // brokerBucket has every asset that has an owner
	numbers numbers
	sender  sender       // of webhooks
	silence func() error // ends the metrics
}

func fileOptions(secrets [][]byte, log *slog.Logger) boltfile.Options {
	buckets := [][]byte{
		stateBucket, numberBucket, assetBucket, realBucket, testBucket, changeBucket, historyBucket, tileBucket, censusBucket,
		webhookBucket, ownedBucket,
	}
	return boltfile.Options{
		Format: format, Buckets: buckets, Added: [][]byte{brokerBucket, referenceBucket, endingBucket},
		Secrets: secrets, Log: log,
	}
}

// Open opens the file at path, and creates it if it does not exist. It returns the same errors as boltfile.Open.
func Open(path string, o Options) (*Store, error) {
	file, err := boltfile.Open(path, fileOptions(o.Secrets, o.Log))
	if err != nil {
		return nil, err
	}
	s := &Store{
		logFile: logFile{file},
		now:     registry.Held(o.Now),
		told:    o.Changing,
		queue:   make(chan *write, maxBatch),
		closed:  make(chan struct{}),
		done:    make(chan struct{}),
	}
	if s.indexed, err = s.indexOwners(o); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if s.silence, err = s.measure(o.Meter); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go s.run()
	return s, nil
}

// Now returns the time of the clock that positions follow: the clock of Options.Now. If that clock steps back by up to
// a second, the time of Now does not step back.
func (s *Store) Now() time.Time { return s.now() }

// Get returns an asset. It returns registry.ErrNotFound if the asset does not exist, and registry.ErrLarge if its
// body has more bytes than the argument `most`.
func (s *Store) Get(ctx context.Context, id string, most int) (r registry.Record, err error) {
	var body []byte
	r, err = s.Look(ctx, id, most, func(text []byte) error {
		body = bytes.Clone(text)
		return nil
	})
	r.Body = body
	return r, err
}

// Look implements registry.Store. It does not copy the body. Without the function see, it reads only the beginning of
// the stored asset, so it does not notice damage further on.
func (s *Store) Look(
	ctx context.Context, id string, most int, see func(body []byte) error,
) (r registry.Record, err error) {
	key, ok := registry.ParseID(id)
	if !ok {
		return r, registry.ErrNotFound
	}
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		value := tx.Bucket(assetBucket).Get(key)
		if value == nil {
			return registry.ErrNotFound
		}
		if see == nil {
			r, _, err = split(id, value)
			return err
		}
		var body []byte
		if r, body, err = checked(id, value, most); err != nil || r.Removed {
			return err
		}
		return see(body)
	})
	if r.Removed {
		return registry.Record{ID: id, Origin: r.Origin}, registry.ErrRemoved
	}
	return r, err
}

// NextNumber returns the next number for an asset that is created on day.
func (s *Store) NextNumber(_ context.Context, day string) (int, error) {
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

// Ready returns nil if the file can take a write now (boltfile.File.Ready).
func (s *Store) Ready(ctx context.Context) error { return s.file.Ready(ctx) }

// Close finishes the writes that are accepted, refuses later ones, and closes the file. Later calls return the
// result of the first call.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closed)
		<-s.done
		s.err = errors.Join(s.silence(), s.file.Close())
	})
	return s.err
}
