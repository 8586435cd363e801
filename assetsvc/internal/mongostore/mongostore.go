// Package mongostore keeps assets and their feed in MongoDB, for any number of
// asset services at once.
//
// The order of changes is the business of package feed; here are the few
// operations on single documents that it is made of (order.go), and the
// reads. What is written is acknowledged by a majority of the replica set, with
// its journal, and read back as of a majority, in sessions that are causally
// consistent with all that this process has seen; so neither a change of the
// primary nor a crash of a member takes an acknowledged write back. There are
// no transactions, pipeline updates or expressions: whatever speaks MongoDB's
// protocol and keeps a document's operations atomic will do.
//
// Collections:
//
//   - assets: one document for each asset (document.go).
//   - clock: one document, the clock: the newest position, and for each writer
//     the first position of its batch in flight, under open, and the ids in
//     it, under ids. They are apart because readers need only the former.
//   - numbers: for each day the newest number given to an asset.
//   - census: one document, how many assets are in each state (census.go).
//
// A page is a range of an index and needs no sort. `db.assets.find({listed:
// true, test: false, position: {$gt: 0, $lte: NumberLong("9000000000000000")}})
// .sort({position: 1}).limit(100).explain()` has IXSCAN and FETCH under LIMIT,
// and no SORT.
package mongostore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/shared/failurelog"
)

// Defaults of Options.
const (
	defaultTimeout = 2 * time.Second
	defaultLease   = 3 * time.Second
)

const (
	maxBatch      = 256                   // changes written together at most
	pause         = 50 * time.Millisecond // before a failed operation of the writer is repeated
	beginInterval = time.Second           // between attempts to begin with a store that does not answer
	looksPerLease = 6                     // of the watcher
)

// Options of a store. Fields that say so may be left zero.
type Options struct {
	Now     func() time.Time // wall clock that positions follow
	Log     *slog.Logger
	Timeout time.Duration         // longest time for one operation of the database; 0: 2 s
	Lease   time.Duration         // how long another process's batch may stall before it is fenced; 0: 3 s
	Meter   metric.Meter          // measures feed and store; nil: nothing does
	Monitor *event.CommandMonitor // is told of each command to the database; nil: nobody is
}

// Store is a registry.Store in a MongoDB database.
type Store struct {
	db      *database
	log     *slog.Logger
	failed  func(error) // logs what the store fails, as a state
	time    *storeTime
	metrics *metrics
	writer  *feed.Writer
	numbers *numbers
	census  *census
	silence func() error // ends what is told of the census

	stop    context.CancelFunc // of what runs in the background
	running sync.WaitGroup
	once    sync.Once
	err     error // of closing

	mu     sync.RWMutex // held for reading by each write under way
	closed bool
}

var errClosed = errors.New("the store is closed")

// Open returns a store in the database that uri names ("assetregistry" if it
// names none), and makes its indexes where they are missing. A database that
// does not answer is no error: the store goes on trying, and answers with
// errors until it does. One whose data is not ours is.
func Open(ctx context.Context, uri string, o Options) (*Store, error) {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Meter == nil {
		o.Meter = noop.NewMeterProvider().Meter("")
	}
	counted, err := newMetrics(o.Meter)
	if err != nil {
		return nil, err
	}
	db, err := connect(uri, o.Timeout, counted.monitors(o.Monitor))
	if err != nil {
		return nil, errors.Join(err, counted.silence())
	}
	s := &Store{
		db:      db,
		log:     o.Log,
		failed:  failurelog.New(o.Log, "the store fails operations; they are repeated or looked into").Failed,
		time:    &storeTime{own: o.Now, log: o.Log},
		metrics: counted,
		numbers: newNumbers(db.takeNumbers),
	}
	s.census = newCensus(db, s.time.own)
	if s.silence, err = s.census.measure(o.Meter); err != nil {
		return nil, errors.Join(err, db.client.Disconnect(context.WithoutCancel(ctx)), counted.silence())
	}
	s.writer = feed.NewWriter(order{db}, feed.Options{
		Name: "w" + rand.Text(), Now: s.time.now, MaxBatch: maxBatch, Timeout: o.Timeout, Pause: pause,
		Batch:  s.beginBatch,
		Failed: s.failed,
	})
	begun := s.begin(ctx)
	if errors.Is(begun, errForeign) {
		return nil, errors.Join(begun, db.client.Disconnect(context.WithoutCancel(ctx)), counted.silence(), s.silence())
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.running.Go(func() {
		if begun != nil {
			o.Log.Warn("the store does not answer yet", "error", begun)
			s.keepBeginning(background)
		}
		s.writer.Run(background)
	})
	s.running.Go(func() { s.addSizes(background) })
	s.running.Go(func() { s.watch(background, o.Lease) })
	s.running.Go(func() {
		s.census.keep(background, func(err error) { o.Log.Warn("the assets could not be counted", "error", err) })
	})
	return s, nil
}

// begin does what has to be done before anything is written.
func (s *Store) begin(ctx context.Context) error {
	if err := s.db.prepare(ctx); err != nil {
		return err
	}
	_, err := s.time.measure(ctx, s.db)
	return err
}

// keepBeginning repeats begin until it succeeds or ctx is done.
func (s *Store) keepBeginning(ctx context.Context) {
	tick := time.NewTicker(beginInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch err := s.begin(ctx); {
		case err == nil:
			s.log.Info("the store answers now")
			return
		case errors.Is(err, errForeign):
			s.failed(fmt.Errorf("prepare the store: %w", err))
		}
	}
}

// Ready returns nil when the database answers and is prepared.
func (s *Store) Ready(ctx context.Context) error {
	return s.db.do(ctx, func(ctx context.Context) error {
		_, err := s.db.readClock(ctx, horizonFields)
		return err
	})
}

// Close waits for the writes under way, refuses others, and disconnects.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.stop()
		s.running.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), s.db.timeout)
		defer cancel()
		if err := s.db.client.Disconnect(ctx); err != nil {
			s.err = fmt.Errorf("disconnect from MongoDB: %w", err)
		}
		s.err = errors.Join(s.err, s.metrics.silence(), s.silence())
	})
	return s.err
}

// watch fences batches that stall, and keeps an eye on the store's clock, until
// ctx is done.
func (s *Store) watch(ctx context.Context, lease time.Duration) {
	watcher := feed.NewWatcher(order{s.db}, lease, time.Now)
	tick := time.NewTicker(lease / looksPerLease)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now, fenced, err := watcher.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.failed(fmt.Errorf("look for stalled batches: %w", err))
		case fenced > 0:
			s.log.Warn("fenced batches of writers that stalled", "batches", fenced)
		}
		if err == nil {
			s.metrics.looked(ctx, now, fenced)
		}
		lead, err := s.time.measure(ctx, s.db)
		if err != nil {
			s.failed(fmt.Errorf("read the store's clock: %w", err))
			continue
		}
		s.metrics.lead.Record(ctx, lead.Seconds())
	}
}
