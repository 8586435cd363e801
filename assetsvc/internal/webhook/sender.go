package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/semaphore"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/sleep"
)

const (
	termTime   = 10 * time.Second // how long a term lasts without a renewal; after that another process may take it
	termMargin = time.Second      // how long before the end of its term a process stops, because clocks differ
	renewEvery = time.Second
	readWithin = 3 * time.Second // longest time of one read of the store
	drainFor   = 3 * time.Second // how long messages under way may go on after Drain
	maxReads   = 8               // maximum number of pages of the feed that are read at the same time
	maxScans   = 1               // maximum number of reads for endpoints with filters; these reads are larger
	loadPage   = 500             // maximum number of endpoints of one read
	loadEvery  = time.Minute     // how often endpoints are read again, even if Term.Changes stays the same (Store.Put)
)

// Config configures a Sender. Store, Feed, Seals, Log and Meter are required.
type Config struct {
	Store  Store
	Feed   Feed
	Seals  Seals
	Policy Policy
	Memory int64 // bytes of all messages under way; at least 512 KiB
	Log    *slog.Logger
	Meter  metric.Meter
}

// Sender sends the changes of the feed while this process has the term.
type Sender struct {
	store      Store
	feed       Feed
	seals      Seals
	log        *slog.Logger
	failures   *failurelog.Log
	transport  http.RoundTripper
	idle       func() // closes the idle connections
	lanes      *lanes
	pages      *semaphore.Weighted
	scanning   *shares // limits the scans of the feed: at most one endpoint of each broker at a time
	scans      *semaphore.Weighted
	metrics    *metrics
	challenged *challenged
	holder     string        // names this process
	await      func(*worker) // waits for the end of a worker; tests replace it

	ctx   context.Context // ends after Close; a test that simulates a kill ends it earlier
	kill  context.CancelFunc
	going context.Context // ends at Drain
	Drain func()          // lets no new message begin; Close calls it too
	done  chan struct{}

	mu     sync.Mutex
	tenure *tenure // nil: another process sends
	heard  time.Time
}

// New returns a Sender, which runs until Close.
func New(c Config) *Sender {
	transport := newTransport(c.Policy, nil)
	s := newSender(c, transport)
	s.idle = transport.CloseIdleConnections
	go s.run()
	return s
}

// newSender returns a Sender that uses the given transport. It does not run yet.
func newSender(c Config, transport http.RoundTripper) *Sender {
	s := &Sender{
		store: c.Store, feed: c.Feed, seals: c.Seals, log: c.Log, transport: transport, idle: func() {},
		failures:   failurelog.New(c.Log, "webhooks cannot be sent; it is tried again"),
		lanes:      newLanes(c.Memory),
		pages:      semaphore.NewWeighted(maxReads),
		scanning:   newShares(1),
		scans:      semaphore.NewWeighted(maxScans),
		challenged: newChallenged(),
		holder:     rand.Text(),
		await:      func(w *worker) { <-w.done },
		done:       make(chan struct{}),
		heard:      time.Now(),
	}
	s.ctx, s.kill = context.WithCancel(context.Background())
	s.going, s.Drain = context.WithCancel(s.ctx)
	s.metrics = newMetrics(c.Meter, s)
	return s
}

// Close waits a few seconds for the messages under way, stores the positions and gives the term back.
func (s *Sender) Close() {
	s.Drain()
	<-s.done
	s.kill()
	s.idle()
	s.metrics.silence()
}

// run sends whenever this process has the term.
func (s *Sender) run() {
	defer close(s.done)
	for s.going.Err() == nil {
		if err := s.lead(); err != nil && s.going.Err() == nil {
			s.failures.Failed(err)
		}
		sleep.For(s.going, renewEvery)
	}
}

// claim takes or renews the term. The result `end` is the time after which the process must not use the term.
func (s *Sender) claim(ctx context.Context) (term Term, end time.Time, held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	now := time.Now()
	term, held, err = s.store.Lead(ctx, s.holder, now, now.Add(termTime))
	if err != nil {
		return term, end, false, fmt.Errorf("take the term of the sender: %w", err)
	}
	s.mu.Lock()
	s.heard = now
	s.mu.Unlock()
	return term, now.Add(termTime - termMargin), held, nil
}

// lead takes the term and sends until the term ends. If another process has the term, lead returns immediately.
func (s *Sender) lead() error {
	term, end, held, err := s.claim(s.going)
	if err != nil || !held {
		return err
	}
	t := newTenure(s, term.Number, end)
	s.setTenure(t)
	defer func() {
		t.end()
		s.setTenure(nil)
	}()
	loaded, at := int64(-1), time.Time{}
	for {
		if t.reload.Swap(false) || term.Changes != loaded || time.Since(at) >= loadEvery {
			switch err := t.load(); {
			case err == nil:
				loaded, at = term.Changes, time.Now()
			case t.waiting.Err() == nil:
				t.reload.Store(true)
				s.failures.Failed(err)
			}
		}
		if !sleep.For(t.waiting, renewEvery) {
			return nil
		}
		next, end, held, err := s.claim(t.waiting)
		switch {
		case err != nil:
			if t.waiting.Err() != nil {
				return nil
			}
			s.failures.Failed(err) // the term goes on until its end, so another renewal may succeed
			continue
		case !held || next.Number != term.Number:
			t.lose()
			return nil
		}
		term = next
		t.extend(end)
	}
}

func (s *Sender) setTenure(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenure = t
}

// The method `now` returns the current tenure, and the time of the store's last answer.
func (s *Sender) now() (*tenure, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenure, s.heard
}
