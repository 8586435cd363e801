package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"golang.org/x/sync/singleflight"

	"asset-registry/shared/redisclient"
)

const (
	workers  = 2   // maximum number of round trips to Redis at the same time
	maxBatch = 128 // maximum number of renewals in one round trip

	peekWithin = time.Second // how long Peek waits for an answer from Redis
)

// BorrowerConfig configures Borrower.
type BorrowerConfig struct {
	Fallback Fallback
	Bytes    int64 // maximum number of bytes of the counts, about; 0: 16 MiB
	Gateways int64 // largest number of gateways that share this Redis; 0: unknown
	Now      func() time.Time
	Log      *slog.Logger
	Meter    metric.Meter // nil: none
}

// Borrower is a Store that borrows tokens from Redis in advance. A request waits for Redis only if the loan of
// a key has ended. The request is admitted if Redis has lent enough tokens, and if the requests of this gateway
// alone are within the limit. So one gateway keeps to the limit even if Redis loses its data.
type Borrower struct {
	config BorrowerConfig
	redis  *Redis
	table  *table
	clock  clock

	down    atomic.Bool
	outages atomic.Int64 // number of times that Redis went down
	unaided atomic.Int64 // number of requests decided without Redis
	trips   atomic.Int64 // number of round trips

	mu     sync.Mutex
	queue  []*renewal
	queued chan struct{} // has an element if the queue may have a renewal
	outage chan error    // takes the cause of an outage from markDown to monitor
	peeks  singleflight.Group

	unregister func() // ends the metrics
	stop       context.CancelFunc
	running    sync.WaitGroup
	ended      chan struct{} // closed when no goroutine runs any more; then no renewal gets an answer
}

// NewBorrower returns a Borrower that uses r. Its method Close closes r, too.
func NewBorrower(r *Redis, c BorrowerConfig) *Borrower {
	if c.Meter == nil {
		c.Meter = noop.NewMeterProvider().Meter("")
	}
	s := &Borrower{
		config: c,
		redis:  r,
		table:  newTable(c.Bytes),
		clock:  startClock(c.Now),
		queued: make(chan struct{}, 1),
		outage: make(chan error, 1),
		ended:  make(chan struct{}),
	}
	s.unregister = s.measure(c.Meter)
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	for range workers {
		s.running.Go(func() { s.work(ctx) })
	}
	s.running.Go(func() { s.monitor(ctx) })
	go func() {
		s.running.Wait()
		s.down.Store(true)
		close(s.ended)
	}()
	return s
}

// Take implements Store. While Redis is down, it does what the fallback says.
func (s *Borrower) Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error) {
	for {
		if s.down.Load() {
			return s.takeUnaided(buckets, states)
		}
		verdict, renewals := s.takeLent(buckets, states)
		if renewals == nil {
			return verdict, nil
		}
		for _, r := range renewals {
			select {
			case <-r.done:
			case <-s.ended:
			case <-ctx.Done():
				return Verdict{}, fmt.Errorf("wait for tokens: %w", ctx.Err())
			}
		}
	}
}

// takeLent takes tokens from the loans and the reserves. If a loan must be renewed first, it takes nothing and returns
// the renewals for which the caller must wait.
func (s *Borrower) takeLent(buckets []Bucket, states []State) (Verdict, []*renewal) {
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer s.table.unlock(entries)
	v := Verdict{}
	v.Wait, v.Refused = localWait(entries, buckets, now, 1)
	first := 0 // index of the bucket's first rate among the rates of all buckets
	for i := range buckets {
		if wait, rate := s.loanWait(entries[i], &buckets[i], now); wait > v.Wait {
			v.Wait, v.Refused = wait, first+rate
		}
		first += len(buckets[i].Rates)
	}
	if v.Wait == 0 {
		if renewals := s.renewals(entries, buckets, now); renewals != nil {
			return Verdict{}, renewals
		}
		commit(entries, buckets, now)
		for i := range buckets {
			s.use(entries[i], &buckets[i], now)
		}
	}
	v.States = s.states(entries, buckets, now, states)
	return v, nil
}

// renewals returns the renewals of all entries that have too few tokens. For such an entry without a queued renewal, it
// queues one.
func (s *Borrower) renewals(entries []*entry, buckets []Bucket, now int64) (renewals []*renewal) {
	for i := range buckets {
		l := &entries[i].loan
		if l.has(now, buckets[i].Cost) || s.hasReserve(entries[i], &buckets[i], now) {
			continue
		}
		if l.renewal == nil {
			s.enqueue(entries[i].renew(now, redisKey(&buckets[i]), buckets[i].Cost, s.config.Gateways))
		}
		renewals = append(renewals, l.renewal)
	}
	return renewals
}

// takeUnaided decides a request without Redis.
func (s *Borrower) takeUnaided(buckets []Bucket, states []State) (Verdict, error) {
	s.unaided.Add(1)
	switch s.config.Fallback {
	case FallbackOpen:
		return Verdict{States: states}, nil
	case FallbackClosed:
		return Verdict{}, ErrStoreDown
	}
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer s.table.unlock(entries)
	v := Verdict{}
	gateways := max(s.config.Gateways, 1)
	if v.Wait, v.Refused = localWait(entries, buckets, now, gateways); v.Wait == 0 {
		commit(entries, buckets, now)
		for i := range buckets {
			entries[i].useUnreported(now, buckets[i].Cost)
		}
	}
	v.States = localStates(entries, buckets, now, states, gateways)
	return v, nil
}

// Peek implements Store. While Redis is down, it returns what is left of this gateway's share.
func (s *Borrower) Peek(ctx context.Context, buckets []Bucket, states []State) ([]State, error) {
	stored := s.peekRedis(ctx, buckets)
	gateways := int64(1)
	if stored == nil {
		gateways = max(s.config.Gateways, 1)
	}
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer s.table.unlock(entries)
	forget(entries, buckets, now)
	states = localStates(entries, buckets, now, states, gateways)
	if stored == nil {
		return states, nil
	}
	rates := states[len(states)-len(stored):]
	n := 0
	for i := range buckets {
		l := &entries[i].loan
		for j := range buckets[i].Rates {
			left := stored[n].Left + s.reserveLeft(entries[i], j, now)
			if now < l.until {
				left += l.left
			}
			rates[n].Left = min(rates[n].Left, left)
			rates[n].Next = max(rates[n].Next, stored[n].Next)
			n++
		}
	}
	return states, nil
}

// peekRedis returns the states in Redis, or nil if Redis does not answer. Callers that ask for the same buckets
// at the same time share one answer.
func (s *Borrower) peekRedis(ctx context.Context, buckets []Bucket) []State {
	var same strings.Builder
	for i := range buckets {
		same.WriteString(redisKey(&buckets[i]) + "\n")
	}
	answer := s.peeks.DoChan(same.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), peekWithin)
		defer cancel()
		return s.read(ctx, buckets), nil
	})
	select {
	case a := <-answer:
		return a.Val.([]State)
	case <-ctx.Done():
		return nil
	}
}

// read returns the states in Redis, or nil if Redis does not answer. The workers send the calls, so more
// callers do not need more connections.
func (s *Borrower) read(ctx context.Context, buckets []Bucket) (stored []State) {
	readings := make([]*renewal, len(buckets))
	for i, c := range callsFor(buckets) {
		c.least, c.most, c.gateways = 0, 0, s.config.Gateways
		readings[i] = &renewal{scriptCall: *c, done: make(chan struct{})}
		s.enqueue(readings[i])
	}
	for _, r := range readings {
		select {
		case <-r.done:
		case <-s.ended:
			return nil
		case <-ctx.Done():
			return nil
		}
		if r.failed {
			return nil
		}
		stored = append(stored, r.states...)
	}
	return stored
}

// states appends the state of every rate. It calculates the state from this gateway's counts and from Redis's
// last answer.
func (s *Borrower) states(entries []*entry, buckets []Bucket, now int64, states []State) []State {
	n := len(states)
	states = localStates(entries, buckets, now, states, 1)
	for i := range buckets {
		for j := range buckets[i].Rates {
			states[n] = entries[i].loan.state(now, j, s.reserveLeft(entries[i], j, now), states[n])
			n++
		}
	}
	return states
}

// IsDown reports whether Redis is down.
func (s *Borrower) IsDown() bool { return s.down.Load() }

// Close ends the background goroutines and closes the connections to Redis. Requests that wait for Redis, and later
// ones, are decided without Redis.
func (s *Borrower) Close() error {
	s.stop()
	<-s.ended
	s.unregister()
	return s.redis.Close()
}

// enqueue queues a renewal for the workers. It does not wait.
func (s *Borrower) enqueue(r *renewal) {
	s.mu.Lock()
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	s.wake()
}

// wake wakes a worker.
func (s *Borrower) wake() {
	select {
	case s.queued <- struct{}{}:
	default:
	}
}

// work sends queued renewals to Redis. Each round trip has the renewals that wait at this moment, at most maxBatch.
func (s *Borrower) work(ctx context.Context) {
	for {
		select {
		case <-s.queued:
		case <-ctx.Done():
			return
		}
		renewals := s.dequeue()
		if len(renewals) == 0 {
			continue
		}
		err := ErrStoreDown
		if !s.down.Load() {
			// If no connection was free, the worker has not asked Redis. So this error does not mean that Redis is
			// down.
			if err = s.roundTrip(ctx, renewals); err != nil && !redisclient.IsShortage(err) {
				s.markDown(err)
			}
		}
		s.finish(renewals, err)
	}
}

// roundTrip makes the calls of all renewals in one round trip.
func (s *Borrower) roundTrip(ctx context.Context, renewals []*renewal) error {
	s.trips.Add(1)
	calls := make([]*scriptCall, len(renewals))
	for i, r := range renewals {
		calls[i] = &r.scriptCall
	}
	return s.redis.run(ctx, calls)
}

// finish passes the answers to the renewals, and so to everybody who waits for them.
func (s *Borrower) finish(renewals []*renewal, err error) {
	now := s.clock.elapsed()
	for _, r := range renewals {
		r.finish(now, err)
	}
}

// dequeue returns up to maxBatch renewals from the queue. If more are left, it wakes another worker.
func (s *Borrower) dequeue() []*renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), maxBatch)
	renewals := s.queue[:n:n]
	s.queue = s.queue[n:]
	if len(s.queue) > 0 {
		s.wake()
	} else {
		s.queue = nil
	}
	return renewals
}
