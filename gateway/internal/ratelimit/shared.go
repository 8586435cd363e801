package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ulule/limiter/v3"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Away is what a gateway does while Redis does not answer.
type Away string

// The ways to go on without Redis.
const (
	AwayLocal  Away = "local"  // count alone, up to this gateway's share of each limit
	AwayOpen   Away = "open"   // let everything in
	AwayClosed Away = "closed" // let nothing in
)

// ErrAway is returned for a request that cannot be counted.
var ErrAway = errors.New("requests cannot be counted now")

const (
	callers    = 2                      // questions to Redis under way at once, each of up to maxBatch
	maxBatch   = 128                    // flights in one round trip
	firstProbe = 20 * time.Millisecond  // until Redis is asked again; each time twice as long,
	lastProbe  = 500 * time.Millisecond // up to this
)

// SharedConfig is what a Shared store needs to know.
type SharedConfig struct {
	Away     Away
	Gateways int64 // the most that count in this Redis; 0: nobody knows
	Now      func() time.Time
	Log      *slog.Logger
	Meter    metric.Meter // nil: none
}

// Shared is a Store on Redis that borrows tokens in leases, so that a request
// waits for Redis only when a lease has ended. A request passes when both Redis
// has lent it a token and this gateway by itself has let through no more than
// the limit: so a gateway alone keeps to it whatever becomes of Redis.
type Shared struct {
	library
	config SharedConfig
	redis  *Redis
	table  *table
	clock  clock

	away    atomic.Bool
	entered atomic.Int64 // times that Redis went away
	alone   atomic.Int64 // requests decided without it
	trips   atomic.Int64 // round trips

	mu      sync.Mutex
	queue   []*flight
	waiting chan struct{} // has an element when the queue has
	tripped chan error    // why Redis is away
	silence func() error  // ends the metrics
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// NewShared returns a store on r, which its Close closes.
func NewShared(r *Redis, c SharedConfig) (*Shared, error) {
	if c.Meter == nil {
		c.Meter = noop.NewMeterProvider().Meter("")
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Shared{
		config:  c,
		redis:   r,
		table:   newTable(),
		clock:   startClock(c.Now),
		waiting: make(chan struct{}, 1),
		tripped: make(chan error, 1),
		stop:    stop,
	}
	s.library.store = s
	if err := s.observe(c.Meter); err != nil {
		stop()
		return nil, err
	}
	for range callers {
		s.ended.Go(func() { s.call(ctx) })
	}
	s.ended.Go(func() { s.watch(ctx) })
	return s, nil
}

// Take implements Store.
func (s *Shared) Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error) {
	for {
		if s.away.Load() {
			return s.takeAlone(buckets, states)
		}
		verdict, flights := s.takeLent(buckets, states)
		if flights == nil {
			return verdict, nil
		}
		for _, f := range flights {
			select {
			case <-f.done:
			case <-ctx.Done():
				return Verdict{}, fmt.Errorf("wait for tokens: %w", ctx.Err())
			}
		}
	}
}

// takeLent takes from the leases, or returns the flights that bring new ones.
func (s *Shared) takeLent(buckets []Bucket, states []State) (Verdict, []*flight) {
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer unlock(entries)
	v := Verdict{}
	v.Wait, v.Refused = localWait(entries, buckets, now, 1)
	rate := 0
	for i := range buckets {
		if wait, short := s.lentWait(entries[i], &buckets[i], now); wait > v.Wait {
			v.Wait, v.Refused = wait, rate+short
		}
		rate += len(buckets[i].Rates)
	}
	if v.Wait == 0 {
		if flights := s.flights(entries, buckets, now); flights != nil {
			return Verdict{}, flights
		}
		commit(entries, buckets, now)
		for i := range buckets {
			s.use(entries[i], &buckets[i], now)
		}
	}
	v.States = s.states(entries, buckets, now, states)
	return v, nil
}

// flights returns what is under way to the entries that have too little, and
// sends off what is not yet.
func (s *Shared) flights(entries []*entry, buckets []Bucket, now int64) (flights []*flight) {
	for i := range buckets {
		l := &entries[i].lease
		if l.has(now, buckets[i].Cost) || s.mayKeep(entries[i], &buckets[i], now) {
			continue
		}
		if l.flight == nil {
			s.send(entries[i].depart(now, redisKey(&buckets[i]), buckets[i].Cost, s.kept()))
		}
		flights = append(flights, l.flight)
	}
	return flights
}

func (s *Shared) takeAlone(buckets []Bucket, states []State) (Verdict, error) {
	s.alone.Add(1)
	switch s.config.Away {
	case AwayOpen:
		return Verdict{States: states}, nil
	case AwayClosed:
		return Verdict{}, ErrAway
	}
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer unlock(entries)
	v := Verdict{}
	gateways := max(s.config.Gateways, 1)
	if v.Wait, v.Refused = localWait(entries, buckets, now, gateways); v.Wait == 0 {
		commit(entries, buckets, now)
		for i := range buckets {
			entries[i].useUnlent(now, buckets[i].Cost)
		}
	}
	v.States = localStates(entries, buckets, now, states, gateways)
	return v, nil
}

// Look implements Store. Away, it tells this gateway's share; open, nothing.
func (s *Shared) Look(ctx context.Context, buckets []Bucket, states []State) ([]State, error) {
	gateways := max(s.config.Gateways, 1)
	var stored []State
	if !s.away.Load() {
		asks := asksFor(buckets)
		for _, a := range asks {
			a.least, a.most, a.kept = 0, 0, s.kept()
		}
		if err := s.redis.run(ctx, asks); err == nil {
			gateways = 1
			for _, a := range asks {
				stored = append(stored, a.states...)
			}
		} else if ctx.Err() == nil {
			s.trip(err)
		}
	}
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer unlock(entries)
	localWait(entries, buckets, now, gateways) // forgets what is over
	states = localStates(entries, buckets, now, states, gateways)
	if stored == nil {
		return states, nil
	}
	rate := len(states) - len(stored)
	for i := range buckets {
		l := &entries[i].lease
		for j := range buckets[i].Rates {
			told := stored[rate-len(states)+len(stored)]
			left := told.Left + s.keptLeft(entries[i], j, now)
			if now < l.until {
				left += l.left
			}
			states[rate].Left = min(states[rate].Left, left)
			states[rate].Next = max(states[rate].Next, told.Next)
			rate++
		}
	}
	return states, nil
}

func (s *Shared) states(entries []*entry, buckets []Bucket, now int64, states []State) []State {
	first := len(states)
	states = localStates(entries, buckets, now, states, 1)
	for i := range buckets {
		for j := range buckets[i].Rates {
			states[first] = entries[i].lease.state(now, j, s.keptLeft(entries[i], j, now), states[first])
			first++
		}
	}
	return states
}

// Reset implements limiter.Store.
func (s *Shared) Reset(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	s.table.drop(libraryKey(key, rate))
	return s.redis.Reset(ctx, key, rate)
}

// Close ends what is under way and closes the connections.
func (s *Shared) Close() error {
	s.stop()
	s.ended.Wait()
	return errors.Join(s.silence(), s.redis.Close())
}

// IsAway tells whether Redis is away.
func (s *Shared) IsAway() bool { return s.away.Load() }

// send puts a flight into the queue; it does not wait.
func (s *Shared) send(f *flight) {
	s.mu.Lock()
	s.queue = append(s.queue, f)
	s.mu.Unlock()
	s.wake()
}

func (s *Shared) wake() {
	select {
	case s.waiting <- struct{}{}:
	default:
	}
}

// call carries flights to Redis and back, as many in one round trip as wait.
func (s *Shared) call(ctx context.Context) {
	for {
		select {
		case <-s.waiting:
		case <-ctx.Done():
			s.trip(ctx.Err())
			s.landAll(s.next(), ctx.Err())
			return
		}
		flights := s.next()
		if len(flights) == 0 {
			continue
		}
		err := ErrAway
		if !s.away.Load() {
			if err = s.fly(ctx, flights); err != nil {
				s.trip(err)
			}
		}
		s.landAll(flights, err)
	}
}

func (s *Shared) fly(ctx context.Context, flights []*flight) error {
	s.trips.Add(1)
	asks := make([]*ask, len(flights))
	for i, f := range flights {
		asks[i] = &f.ask
	}
	return s.redis.run(ctx, asks)
}

func (s *Shared) landAll(flights []*flight, err error) {
	now := s.clock.elapsed()
	for _, f := range flights {
		f.land(now, err)
	}
}

func (s *Shared) next() []*flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), maxBatch)
	flights := s.queue[:n:n]
	s.queue = s.queue[n:]
	if len(s.queue) > 0 {
		s.wake()
	} else {
		s.queue = nil
	}
	return flights
}
