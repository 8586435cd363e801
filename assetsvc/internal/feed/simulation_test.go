package feed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	changesWanted = flag.Int("feed.changes", 20_000, "number of simulated changes")
	seedWanted    = flag.Uint64("feed.seed", 0, "simulate only this seed; 0: simulate seeds 1, 2, 3 and so on")
)

// TestSimulation runs the protocol in a world with every kind of failure. Operations arrive late, get lost, are
// answered with an error, or are applied without an answer. Wall clocks differ and step back. Processes are
// killed, or frozen for longer than the lease. Whatever happens, readers must miss no change. The flag
// -feed.seed repeats a simulation that has failed.
func TestSimulation(t *testing.T) {
	var total tally
	for seed := uint64(1); total.asked < *changesWanted; seed++ {
		if *seedWanted != 0 {
			seed = *seedWanted
		}
		var s *simulation
		synctest.Test(t, func(t *testing.T) {
			s = newSimulation(seed)
			s.run()
		})
		total.add(s.tally)
		if len(s.failed) > 0 {
			t.Fatalf("seed %d: %s", seed, s.summary())
		}
		if *seedWanted != 0 {
			break
		}
	}
	t.Logf("%+v", total)
	if total.acknowledged < total.asked/10 {
		t.Errorf("got %d of %d changes acknowledged, want at least a tenth", total.acknowledged, total.asked)
	}
	if *seedWanted == 0 && min(total.refused, total.unknown, total.errors, total.kills, total.freezes, total.fences,
		total.walks) == 0 {
		t.Errorf("got %+v, want each kind of failure at least once", total)
	}
}

// TestTheSimulationIsTheSameForTheSameSeed runs two simulations with each seed, and compares them. The seed alone
// must be enough to repeat a failure.
func TestTheSimulationIsTheSameForTheSameSeed(t *testing.T) {
	for seed := range uint64(5) {
		var tallies [2]tally
		var clocks [2]string
		for i := range tallies {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(seed + 1)
				s.run()
				tallies[i], clocks[i] = s.tally, fmt.Sprint(s.clock, len(s.documents), len(s.written))
			})
		}
		if tallies[0] != tallies[1] || clocks[0] != clocks[1] {
			t.Errorf("seed %d, second run: got %+v %s, want %+v %s", seed+1, tallies[1], clocks[1], tallies[0],
				clocks[0])
		}
	}
}

// TestTheSimulationCatchesANaiveProtocol lets readers read up to the newest position instead of the horizon. The
// simulation must notice that a change was lost.
func TestTheSimulationCatchesANaiveProtocol(t *testing.T) {
	for seed := range uint64(20) {
		var s *simulation
		synctest.Test(t, func(t *testing.T) {
			s = newSimulation(seed + 1)
			s.naive = true
			s.run()
		})
		for _, failure := range s.failed {
			if failure[:3] == "F1:" {
				t.Logf("seed %d: %s", seed+1, failure)
				return
			}
		}
	}
	t.Error("got no lost change in 20 simulations without a horizon, want one")
}

// TestTheSimulationNeedsEachGuardOfTheRecord runs the simulation without one part of the protocol, each part in turn.
// The simulation must notice that a record is wrong.
func TestTheSimulationNeedsEachGuardOfTheRecord(t *testing.T) {
	for _, c := range []struct {
		leaveOut guard
		name     string
		from     uint64 // first seed to try; this matters for one of the guards only
	}{
		{recordFirst, "the record is stored before the writes", 1},
		{emptyRecord, "Settle stores an empty record", 319},
		{followers, "Settle looks at the changes made since", 1},
		{settleFenced, "a fenced batch is settled", 1},
		{showLater, "the record of a refused Open is not shown", 1},
		{fenceBefore, "a batch is fenced before it is settled", 1},
		{removeRefused, "Settle removes changes that were not applied", 1},
		{showWithWrite, "Write shows the record", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := c.from; seed < c.from+200; seed++ {
				var s *simulation
				synctest.Test(t, func(t *testing.T) {
					s = newSimulation(seed)
					s.leaveOut = c.leaveOut
					s.run()
				})
				if len(s.failed) > 0 {
					t.Logf("seed %d: %s", seed, s.failed[0])
					return
				}
			}
			t.Error("got no violation in 200 simulations, want one")
		})
	}
}

// TestTheSimulationNeedsEachPartOfATrail runs the simulation without one part of the code for trails, each part in
// turn. The simulation must notice a walk that misses a document, or that shows a document in a wrong place.
func TestTheSimulationNeedsEachPartOfATrail(t *testing.T) {
	for _, c := range []struct {
		leaveOut guard
		name     string
	}{
		{former, "moved documents are found"},
		{allSince, "a trail has all places since the horizon"},
		{byHorizon, "a trail forgets by the horizon"},
		{pageFirst, "the page is read before the moved documents"},
		{readAgain, "an unknown place is read again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed < 40; seed++ {
				var s *simulation
				synctest.Test(t, func(t *testing.T) {
					s = newSimulation(seed)
					s.leaveOut = c.leaveOut
					s.run()
				})
				for _, failure := range s.failed {
					if failure[:5] != "Walk:" {
						t.Fatalf("seed %d: got %s, want a failure of a walk", seed, failure)
					}
					t.Logf("seed %d: %s", seed, failure)
					return
				}
			}
			t.Error("got no violation in 39 simulations, want one")
		})
	}
}

// tally counts events.
type tally struct {
	asked, acknowledged, refused, notDone, unknown, errors, kills, freezes, fences, reads, walks, again int
}

func (t *tally) add(o tally) {
	t.asked += o.asked
	t.acknowledged += o.acknowledged
	t.refused += o.refused
	t.notDone += o.notDone
	t.unknown += o.unknown
	t.errors += o.errors
	t.kills += o.kills
	t.freezes += o.freezes
	t.fences += o.fences
	t.reads += o.reads
	t.walks += o.walks
	t.again += o.again
}

// simulation is one run. The goroutine of the test is the scheduler. It does one thing at a time, and then waits until
// all processes are blocked again. So the seed alone decides what happens in the run.
type simulation struct {
	*world
	tally
	naive     bool
	processes []*process
	started   int
	followers []*follower
	walkers   []*walker
	calls     []*call
	asking    sync.WaitGroup
	newest    int64    // highest acknowledged position
	names     []string // ids of documents that several calls may change
	lease     time.Duration
}

// process is one simulated asset service.
type process struct {
	port     *port
	writer   *Writer
	stop     context.CancelFunc
	drift    atomic.Int64 // by how much its wall clock is wrong, ns
	thaws    int          // steps until it runs again; 0: it is not frozen
	fenced   int          // batches that its watcher has fenced
	finished sync.WaitGroup
}

// call is one call of Commit.
type call struct {
	id    string
	after int64        // highest acknowledged position before the call
	told  chan outcome // receives the result
	outcome
	done bool
}

type outcome struct {
	position int64
	err      error
}

const changesEach = 1000 // calls of Commit in one simulation

// mostBytes has two limits for the bytes of a batch. Half of the writers get the first limit, and half get the
// second. Each change has one byte. So the second limit ends batches earlier than the maximum number of changes
// does.
var mostBytes = [2]int{1 << 20, 5}

func newSimulation(seed uint64) *simulation {
	s := &simulation{world: newWorld(seed)}
	s.watch = func(id string, position int64) {
		for i, f := range s.followers {
			if position <= f.offset {
				s.fail("F1: %s appeared at %d after follower %d had read up to %d", id, position, i, f.offset)
			}
		}
	}
	s.lease = lease
	if s.random.IntN(4) == 0 { // a lease so short that watchers fence batches of writers that still work
		s.lease = lease / 10
	}
	for range 1 + s.random.IntN(8) {
		s.start()
	}
	for range 4 {
		s.followers = append(s.followers, &follower{seen: map[string]int64{}})
	}
	for i := range 3 {
		s.walkers = append(s.walkers, &walker{limit: 1 + 4*i})
	}
	for i := range 20 {
		s.names = append(s.names, fmt.Sprintf("shared-%d", i))
	}
	return s
}

func (s *simulation) start() {
	s.started++
	horizon := &atomic.Int64{}
	p := &process{port: &port{world: s.world, process: s.started, ice: newIce(), horizon: horizon}}
	p.drift.Store(int64(s.random.IntN(4000)-2000) * int64(time.Millisecond))
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	now := func() time.Time { return time.Now().Add(time.Duration(p.drift.Load())) }
	p.writer = NewWriter(p.port, Options{
		Name: fmt.Sprint("process-", s.started), Now: now, MaxBatch: 8, MaxBytes: mostBytes[s.started%2], Timeout: timeout,
		Pause: timeout / 10, Size: func(Write) int { return 1 },
		Failed: func(error) {}, Refused: func() {},
		Batch: func(ctx context.Context, _ []context.Context) (context.Context, func()) { return ctx, func() {} },
	})
	watching := &port{world: s.world, process: watchers + s.started, ice: newIce(), horizon: horizon}
	watcher := NewWatcher(watching, s.lease, time.Now)
	p.finished.Go(func() { p.writer.Run(ctx) })
	p.finished.Go(func() {
		for ctx.Err() == nil {
			once, cancel := context.WithTimeout(ctx, timeout)
			_, fenced, _ := watcher.Look(once) // after an error, the next Look tries again
			cancel()
			p.fenced += fenced
			select {
			case <-time.After(s.lease / 4):
			case <-ctx.Done():
			}
		}
	})
	s.processes = append(s.processes, p)
}

func (s *simulation) run() {
	for s.asked < changesEach && len(s.failed) == 0 {
		s.step(true)
	}
	// From now on there are no further failures, so every batch must end.
	calm := func(i int) bool { return i >= 3000 && len(s.clock.Open) == 0 && len(s.pending) == 0 }
	for i := 0; !calm(i) && i < 100_000 && len(s.failed) == 0; i++ {
		s.step(false)
	}
	if len(s.clock.Open) > 0 {
		s.fail("F5: a batch never closes: %v", s.clock)
	}
	for range 2 {
		for _, f := range s.followers {
			f.step(s.world, s.horizon)
			f.step(s.world, s.horizon)
		}
	}
	s.settle()
	s.check()
	s.tally.errors = s.world.errors
	for _, w := range s.walkers {
		s.walks += w.walks
		s.again += w.again
	}
	for _, p := range s.processes {
		s.kill(p)
	}
	s.asking.Wait()
}

func (s *simulation) horizon() int64 {
	if s.naive {
		return s.clock.Last
	}
	return s.clock.Horizon()
}

// step does one thing. If wild is false, it starts no call of a client and causes no failure.
func (s *simulation) step(wild bool) {
	for _, p := range s.processes {
		if p.thaws > 0 {
			if p.thaws--; p.thaws == 0 || !wild {
				p.thaws = 0
				p.port.ice.melt()
			}
		}
	}
	switch n := s.random.IntN(1000); {
	case wild && n < 150:
		s.ask()
	case n < 300:
		s.followers[s.random.IntN(len(s.followers))].step(s.world, s.horizon)
		s.reads++
	case n < 315:
		s.walkers[s.random.IntN(len(s.walkers))].step(s.world)
	case n < 330:
		time.Sleep(time.Duration(s.random.IntN(15)) * time.Millisecond)
	case wild && n < 335:
		p := s.processes[s.random.IntN(len(s.processes))]
		p.drift.Add(int64(s.random.IntN(2000)-1000) * int64(time.Millisecond))
	case wild && n == 335:
		i := s.random.IntN(len(s.processes))
		s.kill(s.processes[i])
		s.processes = append(s.processes[:i:i], s.processes[i+1:]...)
		s.kills++
		s.start()
	case wild && n < 338:
		if p := s.processes[s.random.IntN(len(s.processes))]; p.thaws == 0 {
			p.thaws = 100 + s.random.IntN(3000)
			p.port.ice.freeze()
			s.freezes++
		}
	default:
		for range 3 {
			s.world.step()
		}
	}
	s.settle()
}

// settle waits until all processes are blocked. Then it collects the operations that they have sent, and the
// results of calls.
func (s *simulation) settle() {
	synctest.Wait()
	s.collect()
	for _, c := range s.calls {
		select {
		case c.outcome = <-c.told:
			c.done = true
		default:
			continue
		}
		switch {
		case c.err == nil:
			s.acknowledged++
			if c.position <= c.after {
				s.fail("F3: %s got position %d after %d was acknowledged", c.id, c.position, c.after)
			}
			s.newest = max(s.newest, c.position)
		case errors.Is(c.err, ErrRefused):
			s.refused++
		case errors.Is(c.err, ErrNotDone):
			s.notDone++
		case errors.Is(c.err, ErrUnknown):
			s.unknown++
		}
	}
}

// ask calls Commit of a random process. The call creates a document, or changes the current revision of one.
func (s *simulation) ask() {
	s.asked++
	p := s.processes[s.random.IntN(len(s.processes))]
	c := &call{id: s.names[s.random.IntN(len(s.names))], after: s.newest, told: make(chan outcome, 1)}
	if s.random.IntN(5) == 0 {
		c.id = fmt.Sprint("new-", s.asked)
	}
	write := Write{ID: c.id}
	if d := s.documents[c.id]; d != nil {
		write.Revision, write.Before = d.revision, d.position
	}
	// The timeout is a random number of nanoseconds, so that no two events happen at the same time.
	patience := time.Duration(s.random.Int64N(int64(20 * timeout)))
	s.calls = append(s.calls, c)
	s.asking.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		position, err := p.writer.Commit(ctx, write)
		c.told <- outcome{position, err}
	})
}

func (s *simulation) kill(p *process) {
	p.stop()
	if p.thaws > 0 {
		p.thaws = 0
		p.port.ice.melt()
	}
	p.finished.Wait()
	s.fences += p.fenced
}

// applied reports whether a document was ever written. A document that is not shared has only one call, so the
// result is also the outcome of that call.
func (s *simulation) applied(id string) bool {
	for _, of := range s.written {
		if of == id {
			return true
		}
	}
	return false
}

// check compares the stored documents with the results of the calls, and with the entries that followers saw.
func (s *simulation) check() {
	for i, f := range s.followers {
		for id, d := range s.documents {
			if d.position > 0 && f.seen[id] != d.position {
				s.fail("F1: %s is at %d, but follower %d last saw it at %d", id, d.position, i, f.seen[id])
			}
		}
	}
	for _, c := range s.calls {
		writer, there := s.written[c.position]
		there = there && writer == c.id
		switch {
		case c.done && c.err == nil && !there:
			s.fail("%s was acknowledged at %d, but no write is there", c.id, c.position)
		case c.done && (errors.Is(c.err, ErrRefused)) && c.position != 0 && there:
			s.fail("%s was refused, but its write is at %d", c.id, c.position)
		case c.done && errors.Is(c.err, ErrNotDone) && !slices.Contains(s.names, c.id) && s.applied(c.id):
			s.fail("%s was not done, but it is there", c.id)
		}
	}
	s.checkRecords(0, s.clock.Last)
	positions := make([]int64, 0, len(s.written))
	for position := range s.written {
		positions = append(positions, position)
	}
	sort.Slice(positions, func(i, j int) bool { return positions[i] < positions[j] })
	if len(positions) > 0 && positions[len(positions)-1] > s.clock.Last {
		s.fail("F3: a write has position %d, but the clock's last position is %d", positions[len(positions)-1],
			s.clock.Last)
	}
}
