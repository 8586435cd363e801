package feed

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Times in a replica set of three servers in one datacentre.
const (
	flight   = 200 * time.Microsecond  // shortest time that a message is under way
	jitter   = 300 * time.Microsecond  // maximum additional time that a message is under way
	majority = 3500 * time.Microsecond // shortest time until most servers have a write
	slack    = 1500 * time.Microsecond // maximum additional time until most servers have it
)

// shared is a Store in virtual time that never fails. Many writers share it.
type shared struct {
	mu      sync.Mutex
	random  *rand.Rand
	clock   Clock
	refused int // Opens that were refused
}

// pause waits for the time `least`, and then for a random part of the time `more`.
func (s *shared) pause(least, more time.Duration) {
	s.mu.Lock()
	d := least + time.Duration(s.random.Int64N(int64(more)))
	s.mu.Unlock()
	time.Sleep(d)
}

// send waits until the message of an operation has arrived, applies the operation, and waits for the answer to
// arrive.
func (s *shared) send(apply func()) {
	s.pause(flight, jitter)
	if apply != nil {
		s.mu.Lock()
		apply()
		s.mu.Unlock()
	}
	s.pause(flight, jitter)
}

// write does what send does, and then waits until a majority has the write.
func (s *shared) write(apply func()) {
	s.send(apply)
	s.pause(majority, slack)
}

func (s *shared) Open(_ context.Context, writer string, b Batch, _ []Write) (now Clock, opened bool, _ error) {
	s.write(func() {
		if opened = s.clock.Last < b.First; opened {
			s.clock = copyOf(s.clock)
			s.clock.Last, s.clock.Open[writer] = b.Last(), b
			now = s.clock
		}
	})
	if !opened {
		s.send(func() { now = s.clock })
	}
	return now, opened, nil
}

func (s *shared) Close(_ context.Context, writer string, first int64) error {
	s.write(func() {
		if s.clock.Open[writer].First == first {
			s.clock = copyOf(s.clock)
			delete(s.clock.Open, writer)
		}
	})
	return nil
}

func (s *shared) Clock(context.Context) (now Clock, _ error) {
	s.send(func() { now = s.clock })
	return now, nil
}

func (s *shared) Write(_ context.Context, _ string, _ Batch, writes []Write) (int, error) {
	s.write(nil)
	return len(writes), nil
}

func (s *shared) Fence(context.Context, []string) error { return nil }

func (s *shared) Settle(context.Context, string, int64) (map[string]bool, error) { return nil, nil }

// service says how well one writer was served.
type service struct {
	changes int
	p50     time.Duration
}

// served says how well all writers were served.
type served struct {
	writers []service
	refused int
	ahead   time.Duration // how far the newest position is ahead of the time
}

func (s served) changes() (sum int) {
	for _, w := range s.writers {
		sum += w.changes
	}
	return sum
}

// Load of one run of serve.
const (
	clientsEach = 24 // clients of each writer; each client has one change under way
	servedFor   = 5 * time.Second
)

// serve runs one writer for each of the clocks.
func serve(t *testing.T, clocks []func() time.Time) served {
	t.Helper()
	return serveBy(t, func(*shared) []func() time.Time { return clocks })
}

// serveBy is serve with clocks that look at the store.
func serveBy(t *testing.T, by func(*shared) []func() time.Time) (s served) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &shared{random: rand.New(rand.NewPCG(1, 1))}
		clocks := by(store)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		delays := make([][]time.Duration, len(clocks)*clientsEach)
		for i, now := range clocks {
			w := NewWriter(store, Options{
				Name: fmt.Sprint(i), Now: now, MaxBatch: 256, MaxBytes: 1 << 20, Timeout: time.Minute,
				Pause: time.Millisecond, Size: func(Write) int { return 1 }, Failed: func(err error) { t.Error(err) },
				Refused: func() { store.mu.Lock(); store.refused++; store.mu.Unlock() },
				Batch:   func(ctx context.Context, _ []context.Context) (context.Context, func()) { return ctx, func() {} },
			})
			running.Go(func() { w.Run(ctx) })
			for n := range clientsEach {
				running.Go(func() { delays[i*clientsEach+n] = keepChanging(ctx, w, fmt.Sprint(i, " ", n)) })
			}
		}
		time.Sleep(servedFor)
		store.mu.Lock()
		s.ahead = time.Until(time.UnixMicro(store.clock.Last))
		store.mu.Unlock()
		stop()
		running.Wait()
		s.refused = store.refused
		for each := range slices.Chunk(delays, clientsEach) {
			all := slices.Concat(each...)
			slices.Sort(all)
			s.writers = append(s.writers, service{len(all), all[len(all)/2]})
		}
	})
	return s
}

// keepChanging changes a document again and again until ctx is done. It returns how long each change took.
func keepChanging(ctx context.Context, w *Writer, id string) (delays []time.Duration) {
	for {
		begun := time.Now()
		if _, err := w.Commit(ctx, Write{ID: id}); err != nil {
			return delays
		}
		delays = append(delays, time.Since(begun))
	}
}

// The function `apart` returns clocks that are ahead by different times. The first clock is right. The last one is
// ahead by the second argument.
func apart(count int, most time.Duration) (clocks []func() time.Time) {
	for i := range count {
		drift := most * time.Duration(i) / time.Duration(count-1)
		clocks = append(clocks, func() time.Time { return time.Now().Add(drift) })
	}
	return clocks
}

// TestWritersWithDifferentClocksAreServedAlike compares writers whose clocks differ with writers whose clocks
// agree. All must make about as many changes. Positions must not get ahead of the fastest clock.
func TestWritersWithDifferentClocksAreServedAlike(t *testing.T) {
	for _, c := range []struct {
		writers int
		most    time.Duration
	}{
		{2, 10 * time.Millisecond}, {4, 20 * time.Millisecond}, {4, 100 * time.Millisecond}, {8, 10 * time.Millisecond},
		{8, 2 * time.Second},
	} {
		alike := serve(t, apart(c.writers, 0))
		served := serve(t, apart(c.writers, c.most))
		served.check(t, fmt.Sprintf("%d writers %v apart", c.writers, c.most), alike)
		if served.ahead > c.most+time.Millisecond {
			t.Errorf("%d writers %v apart: got positions %v ahead, want none ahead of the fastest clock", c.writers,
				c.most, served.ahead)
		}
	}
}

// TestAClockThatJumpsCostsItsWriterNothing has eight writers, and lets some of their clocks jump while all of
// them write. All writers together must still make about as many changes as writers whose clocks agree. After a
// jump ahead, a clock becomes right again, because Options.Now must not return times far ahead for ever.
func TestAClockThatJumpsCostsItsWriterNothing(t *testing.T) {
	alike := serve(t, apart(8, 0))
	for _, c := range []struct {
		name    string
		by      time.Duration
		back    time.Duration // after this time the clock is right again; 0: it stays wrong
		writers int           // number of writers with this clock
	}{
		{"an hour back", -time.Hour, 0, 1},
		{"an hour back, then ahead to the right time", -time.Hour, 2 * time.Second, 1},
		{"all but one an hour back", -time.Hour, 0, 7},
		{"100 ms ahead, then back", 100 * time.Millisecond, 2 * time.Second, 1},
	} {
		clocks := apart(8, 0)
		for i := range c.writers {
			begun := time.Time{}
			clocks[i] = func() time.Time {
				now := time.Now()
				if begun.IsZero() {
					begun = now
				}
				if since := now.Sub(begun); since > time.Second && (c.back == 0 || since < time.Second+c.back) {
					return now.Add(c.by)
				}
				return now
			}
		}
		served := serve(t, clocks)
		served.check(t, c.name, alike)
		if served.ahead > max(c.by, 0)+time.Millisecond {
			t.Errorf("%s: got positions %v ahead", c.name, served.ahead)
		}
	}
}

// machines returns the clocks that positions follow on machines whose own clocks and whose store's clock are ahead by
// the given times. Each machine reads the store's clock and the newest position twice a second. Its peers write
// nothing.
func machines(store *shared, own, peers []time.Duration, primary func(passed time.Duration) time.Duration,
) (clocks []func() time.Time) {
	began := time.Now()
	for i := range own {
		var read time.Time // when it last read the store
		var lead time.Duration
		confirmed := false
		clocks = append(clocks, func() time.Time {
			now := time.Now()
			if now.Sub(read) >= 500*time.Millisecond {
				var others []time.Time
				for _, lead := range peers {
					others = append(others, now.Add(lead))
				}
				store.mu.Lock()
				last := store.clock.Last
				store.mu.Unlock()
				read, lead = now, primary(now.Sub(began))
				confirmed = Confirmed(now.Add(lead), now.Add(own[i]), others, last)
			}
			if lead-own[i] > MaxAhead && !confirmed {
				return now.Add(own[i])
			}
			return now.Add(lead)
		})
	}
	return clocks
}

// TestWritersOfWrongClocks has eight machines. Whatever the clocks of some of them or of the primary, no writer is
// served much worse than another, and positions are never further ahead of the right time than MaxAhead, and what a
// clock drifts between two looks.
func TestWritersOfWrongClocks(t *testing.T) {
	const drift = time.Second / 2 // a second
	alike := serve(t, apart(8, 0))
	right := func(time.Duration) time.Duration { return 0 }
	for _, by := range []time.Duration{100 * time.Millisecond, 2 * time.Second, time.Hour} {
		wrong := func(time.Duration) time.Duration { return by }
		for _, c := range []struct {
			name    string
			wrong   int           // machines whose clocks are wrong
			by      time.Duration // how far these are ahead
			primary func(passed time.Duration) time.Duration
			peers   []time.Duration
		}{
			{"one behind", 1, -by, right, []time.Duration{0, 0}},
			{"two behind, with one peer", 2, -by, right, []time.Duration{0}},
			{"two ahead", 2, by, right, []time.Duration{0, 0}},
			{"the primary ahead", 0, 0, wrong, []time.Duration{0, 0}},
			{"the primary and the only peer ahead", 0, 0, wrong, []time.Duration{by}},
			{"the primary behind", 0, 0, func(time.Duration) time.Duration { return -by }, []time.Duration{0, 0}},
			{"the primary steps ahead and back", 0, 0, func(passed time.Duration) time.Duration {
				return by * (passed / (2 * time.Second) % 2)
			}, []time.Duration{0, 0}},
			{"the primary drifts ahead", 0, 0, func(passed time.Duration) time.Duration {
				return min(by, time.Duration(passed.Seconds()*float64(drift)))
			}, []time.Duration{0, 0}},
		} {
			own := make([]time.Duration, 8)
			for i := range c.wrong {
				own[i] = c.by
			}
			name := fmt.Sprint(c.name, " by ", by)
			served := serveBy(t, func(s *shared) []func() time.Time { return machines(s, own, c.peers, c.primary) })
			served.check(t, name, alike)
			// A writer that is behind and follows its own clock has 0.74 of the others' changes.
			if got, want := served.writers[0].changes, served.writers[7].changes*9/10; c.by < 0 && got < want {
				t.Errorf("%s: got %d changes, want %d at least, 0.9 of the others'", name, got, want)
			}
			if most := MaxAhead + drift; served.ahead > most {
				t.Errorf("%s: got positions %v ahead, want %v at most", name, served.ahead, most)
			}
		}
	}
}

// check fails the test if the writers made fewer changes than writers whose clocks agree (alike), or if one
// writer was served much worse than another writer.
func (s served) check(t *testing.T, name string, alike served) {
	t.Helper()
	t.Logf("%s: %d changes, %d with the same clock, refused %d and %d; %v", name, s.changes(), alike.changes(), s.refused,
		alike.refused, s)
	if got, want := s.changes(), alike.changes()*9/10; got < want {
		t.Errorf("%s: got %d changes, want %d at least, 0.9 of those with the same clock", name, got, want)
	}
	best := slices.MinFunc(s.writers, func(a, b service) int { return cmp.Compare(a.p50, b.p50) })
	most := slices.MaxFunc(s.writers, func(a, b service) int { return cmp.Compare(a.changes, b.changes) })
	for i, w := range s.writers {
		if w.p50 >= 2*best.p50 {
			t.Errorf("%s: writer %d: got a median of %v, want less than twice the best, %v", name, i, w.p50, best.p50)
		}
		if w.changes*10 < most.changes*7 {
			t.Errorf("%s: writer %d: got %d changes, want 0.7 of the best at least, %d", name, i, w.changes, most.changes)
		}
	}
}
