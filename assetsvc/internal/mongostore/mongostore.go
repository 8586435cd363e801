// Package mongostore keeps assets and their feed in MongoDB, for any number of
// asset services at once.
//
// Package feed orders the changes. This package implements the operations on
// single documents that the feed needs (feedstore.go), and the reads.
//
// Durability: a majority of the replica set acknowledges each write once the write is in its journal. Reads use
// the majority read concern, in sessions that are causally consistent with everything this process has seen. So
// an acknowledged write survives a change of the primary and the crash of a member. With Options.FreshReads, a
// read shows the acknowledged writes of all processes even while the primary changes (barrier.go).
//
// The package uses no transactions, pipeline updates or expressions. It works with any server that speaks
// MongoDB's protocol and updates each document atomically.
//
// Collections:
//
//   - assets: one document for each asset (document.go).
//   - changes: the record of each batch (record.go), or of one imported change.
//   - clock: one document. It has the newest position. For each writer with an
//     open batch, the field `open` has the first position of that batch, and the
//     field `ids` has its documents. Readers need the field `open`, but not ids.
//   - log: the full parts of the public log, and its head (publiclog.go).
//   - numbers: for each day the newest number given to an asset.
//   - webhooks: one document for each webhook (webhooks.go).
//   - endings: what ended keys, beside the assets (endings.go).
//   - senders: one document, with the term of the process that sends webhooks.
//
// A page is a range of an index and needs no sort. In mongosh,
//
//	db.assets.find({listed: true, test: false,
//	  position: {$gt: 0, $lte: NumberLong("9000000000000000")}}, {position: 1, size: 1, test: 1})
//	  .sort({position: 1}).limit(100).explain()
//
// shows IXSCAN and no FETCH and no SORT.
package mongostore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/closing"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/sleep"
)

// Defaults of Options.
const (
	DefaultTimeout = 2 * time.Second
	DefaultLease   = 3 * time.Second
)

const (
	maxBatch        = 256                   // maximum number of changes in one batch
	maxBytes        = 8 << 20               // maximum number of bytes of a batch's changes; a document may have 16 MiB
	writerPause     = 50 * time.Millisecond // pause before the writer repeats a failed operation
	prepareInterval = time.Second           // time between attempts to prepare a store that does not answer
	readyFor        = time.Second / 2       // a store whose clock was read so recently is ready
	looksPerLease   = 8                     // looks of the watcher during one lease; a look may use a recent reading
)

// Options configure a store. Now and Log are required; the zero values of the other fields work.
type Options struct {
	Now     func() time.Time   // this machine's clock; the store's clock is compared with it
	Others  func() []time.Time // the clocks of this machine's peers; nil: there are none
	Log     *slog.Logger
	Timeout time.Duration         // longest time of one operation of the database; 0: 2 s
	Lease   time.Duration         // a batch that stays open longer is fenced; 0: 3 s
	Meter   metric.Meter          // gets the metrics of the feed and the store; nil: no metrics
	Monitor *event.CommandMonitor // is called for each command to the database; nil: no monitor

	// Owner returns the owner of an asset that an earlier version of this program stored without a field for the
	// owner. If Owner is nil, such an asset is in no broker's list.
	Owner func(registry.Record) (string, error)

	// FreshReads makes Get, Page and Log show every change that any process has acknowledged before, even while
	// MongoDB elects a primary. Each read waits for a barrier, and reads that wait at the same time share a barrier.
	// If the barrier fails, the read fails. Without FreshReads, a primary that was voted out and does not know it yet
	// may answer reads from its old state for some seconds. On a server that belongs to no replica set, every barrier
	// fails.
	FreshReads bool
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	if o.Meter == nil {
		o.Meter = noop.NewMeterProvider().Meter("")
	}
	if o.Others == nil {
		o.Others = func() []time.Time { return nil }
	}
	return o
}

// Store implements registry.Store on a MongoDB database. It also stores the public log and webhooks. It is safe
// for concurrent use.
type Store struct {
	db      *database
	log     *slog.Logger
	failed  func(error) // logs failed operations; failures in a row are logged as one lasting failure
	time    *storeTime
	now     func() time.Time // the clock that positions follow; made from the field `time`
	metrics *metrics
	writer  *feed.Writer
	numbers *numbers
	census  *census

	filled   atomic.Bool   // every asset has its owner, so the lists of brokers are complete
	patience time.Duration // how long a page waits while too many assets are above the horizon

	unready atomic.Pointer[error] // the reason why the database is not prepared; nil: it is prepared

	stop    context.CancelFunc // ends the background work below
	running sync.WaitGroup     // the background work
	closers closing.List       // functions that release what newStore opened; called from last to first
	once    sync.Once
	err     error // result of the first Close

	mu     sync.RWMutex // each write holds it for reading until it ends; Close takes it for writing
	closed bool
}

var errClosed = errors.New("the store is closed")

// Open returns a store in the database that uri names, or in "assetregistry" if uri names no database. It creates
// missing indexes. It returns errForeign if the database contains other data. If the database does not answer, or
// needs long to build an index, Open returns a store nevertheless: the store keeps trying, and its methods return
// errors until the database is prepared.
func Open(ctx context.Context, uri string, o Options) (*Store, error) {
	o = o.withDefaults()
	s, err := newStore(uri, o)
	if err != nil {
		return nil, err
	}
	first := s.start(ctx, o)
	select {
	case err = <-first:
	case <-time.After(o.Timeout):
	case <-ctx.Done():
	}
	if errors.Is(err, errForeign) || errors.Is(err, errAddress) {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Now returns the time of the clock that positions follow. This is MongoDB's clock; until MongoDB was asked for
// the first time, it is this machine's clock.
func (s *Store) Now() time.Time { return s.now() }

// newStore returns a store that has sent nothing to the database yet.
func newStore(uri string, o Options) (_ *Store, err error) {
	failures := failurelog.New(o.Log, "operations of the store fail; they are retried or fenced")
	s := &Store{
		log:    o.Log,
		failed: failures.Failed,
		time:   newStoreTime(o.Now, o.Others, o.Log),
		// A stalled batch is fenced within its lease. Then the horizon moves on, and the page need not wait
		// longer.
		patience: 2 * o.Lease,
	}
	s.closers.Do(failures.Close)
	s.now = registry.Held(s.time.now)
	s.unready.Store(&errUnasked)
	s.filled.Store(o.Owner == nil)
	s.metrics = newMetrics(o.Meter)
	s.closers.Do(s.metrics.silence)
	if s.db, err = connect(uri, o.Timeout, s.metrics.monitors(o.Monitor)); err != nil {
		return nil, errors.Join(err, s.closers.Close())
	}
	s.closers.Add(s.db.disconnect)
	if o.FreshReads {
		s.db.barrier = newBarrier(s.metrics.timed(s.db.sendBarrier))
		s.closers.Add(s.db.barrier.close)
	}
	s.numbers = newNumbers(s.db.takeNumbers)
	s.census = newCensus(s.db, s.log)
	s.closers.Do(s.census.measure(o.Meter))
	s.writer = feed.NewWriter(feedStore{s.db}, feed.Options{
		Name:     "w" + rand.Text(),
		Now:      s.now,
		MaxBatch: maxBatch,
		MaxBytes: maxBytes,
		Size:     sizeOfWrite,
		Timeout:  o.Timeout,
		Pause:    writerPause,
		Batch:    s.beginBatch,
		Failed:   s.failed,
		Refused:  func() { s.metrics.refused.Add(context.Background(), 1) },
	})
	return s, nil
}

// The method `start` runs keepPreparing in the background, and the other background work once the database is
// prepared. The returned channel gets the result of the first attempt to prepare the database.
func (s *Store) start(ctx context.Context, o Options) (first <-chan error) {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan error, 1)
	s.running.Go(func() {
		if !s.keepPreparing(ctx, result) {
			return
		}
		s.running.Go(func() { s.watch(ctx, o.Lease) })
		s.running.Go(func() { s.keepFilling(ctx, o.Owner) })
		s.running.Go(func() {
			s.census.keep(ctx, func(err error) { s.log.Warn("counting the assets failed", "error", err) })
		})
		s.writer.Run(ctx)
	})
	return result
}

// prepare does everything that must be done before the first write.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.db.open(ctx); err != nil {
		return err
	}
	if err := s.db.claim(ctx); err != nil {
		return err
	}
	if _, err := s.time.measure(ctx, s.db, 0); err != nil {
		return err
	}
	s.unready.Store(&errIndexes)
	return s.db.createIndexes(ctx, s.log)
}

// errUnasked is the reason why a store is not ready before MongoDB's first answer. errIndexes is the reason while a
// command that builds indexes runs.
var (
	errUnasked = errors.New("MongoDB has not answered yet")
	errIndexes = errors.New("MongoDB is building indexes of the store")
)

// keepPreparing repeats prepare until it succeeds or ctx is done, and reports whether it has succeeded. It sends the
// result of the first attempt to the given channel.
func (s *Store) keepPreparing(ctx context.Context, first chan<- error) bool {
	for tried := 0; ; tried++ {
		begun := time.Now()
		err := s.prepare(ctx)
		if tried == 0 {
			first <- err
		}
		switch {
		case err == nil:
			s.unready.Store(nil)
			if tried > 0 || time.Since(begun) > prepareInterval {
				s.log.Info("the store is ready now")
			}
			return true
		case ctx.Err() != nil:
			return false
		case tried == 0:
			s.log.Warn("the store is not ready yet", "error", err)
		default:
			s.failed(fmt.Errorf("prepare the store: %w", err))
		}
		if s.unready.Store(&err); !sleep.For(ctx, prepareInterval) {
			return false
		}
	}
}

// Ready returns nil if the database is prepared, and has answered in the time readyFor. With FreshReads, the database
// must answer a barrier and a read.
func (s *Store) Ready(ctx context.Context) error {
	if why := s.unready.Load(); why != nil {
		return fmt.Errorf("the store is not ready yet: %w", *why)
	}
	if err := s.db.fresh(ctx); err != nil {
		return err
	}
	age := readyFor
	if s.db.barrier != nil {
		age = 0
	}
	return s.db.do(ctx, func(ctx context.Context) error {
		_, err := s.db.recentHorizon(ctx, age)
		return err
	})
}

// Close waits for the writes under way, refuses later writes, and disconnects. Later calls return the result of
// the first call.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.stop()
		s.running.Wait()
		s.err = s.closers.Close()
	})
	return s.err
}

// watch fences stalled batches and compares this machine's clock with the
// store's, until ctx is done.
func (s *Store) watch(ctx context.Context, lease time.Duration) {
	watcher := feed.NewWatcher(feedStore{s.db}, lease, time.Now)
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
			s.log.Warn("fenced stalled batches", "batches", fenced)
		}
		if err == nil {
			s.metrics.recordClock(ctx, now, fenced)
		}
		lead, err := s.time.measure(ctx, s.db, now.Last)
		if err != nil {
			s.failed(fmt.Errorf("read the store's clock: %w", err))
			continue
		}
		s.metrics.lead.Record(ctx, lead.Seconds())
	}
}
