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
// The lists of brokers and the references are further buckets (owners.go, write.go).
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
	"maps"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/assetsvc/internal/asset"
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

	referenceBucket = []byte("references") // key of a reference -> id (write.go)

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
	sender  sender // of webhooks
	silence func() // ends the metrics
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
	s.silence = s.measure(o.Meter)
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
		s.silence()
		s.err = s.file.Close()
	})
	return s.err
}

// tally has, for each state, the number of assets that enter the state minus the number of assets that leave it.
type tally registry.Census

// save adds the tally to the census.
func (c tally) save(census *bbolt.Bucket) error {
	for state, more := range c {
		if state == "" || more == 0 {
			continue
		}
		if value := census.Get([]byte(state)); value != nil {
			more += positionOf(value)
		}
		if err := census.Put([]byte(state), positionKey(more)); err != nil {
			return err
		}
	}
	return nil
}

// census returns the number of assets in each state, or nil if the file cannot be read.
func (s *Store) census(context.Context) registry.Census {
	counted := registry.Census{}
	err := s.file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(censusBucket).ForEach(func(key, value []byte) error {
			counted[asset.Status(key)] = positionOf(value)
			return nil
		})
	})
	if err != nil {
		return nil
	}
	return counted
}

// measure reports the census and the size of the file to meter until the caller calls silence. If meter is nil,
// it reports nothing.
func (s *Store) measure(meter metric.Meter) (silence func()) {
	if meter == nil {
		meter = noop.NewMeterProvider().Meter("")
	}
	assets, file := registry.MeasureCensus(meter, s.census), s.file.Measure(meter, "assets")
	return func() { assets(); file() }
}

// numbers gives out the numbers of assets, which count from 1 on each day. A number becomes durable with the next
// write, so the number of a stored asset is always durable. Numbers that no stored asset has may be given out
// again after the process ends.
type numbers struct {
	mu    sync.Mutex
	given map[string]int // day -> newest number given out, for days whose newest number is not durable yet
}

// The method `next` returns the number after the newest one of the day. If n.given does not have the day, the newest
// durable number comes from the function `stored`.
func (n *numbers) next(day string, stored func() (int, error)) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.given[day]
	if !known {
		var err error
		if number, err = stored(); err != nil {
			return 0, err
		}
	}
	if n.given == nil {
		n.given = map[string]int{}
	}
	n.given[day] = number + 1
	return number + 1, nil
}

// save writes the numbers that were given out into a transaction, and returns them. The caller passes them to the
// method `forget` later.
func (n *numbers) save(bucket *bbolt.Bucket) (map[string]int, error) {
	n.mu.Lock()
	saved := maps.Clone(n.given)
	n.mu.Unlock()
	for day, number := range saved {
		if err := bucket.Put([]byte(day), positionKey(int64(number))); err != nil {
			return nil, err
		}
	}
	return saved, nil
}

// forget removes the days for which no number was given out since save. Call it once the transaction of save is
// durable.
func (n *numbers) forget(saved map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.given, func(day string, number int) bool { return number == saved[day] })
}
