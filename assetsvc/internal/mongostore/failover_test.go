package mongostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// replicas simulates a replica set during elections, as deploy/test/model/failover.pml does. A change is a
// number, and changes are acknowledged in the order of their numbers. A primary that was voted out does not know
// that for some time, and answers from its old state.
type replicas struct {
	mu       sync.Mutex
	random   *rand.Rand
	leaveOut leftOut
	written  int64 // newest change that a majority has
	primary  int   // the node that a majority follows
	nodes    [3]struct {
		leads bool  // it is the primary, or still believes that it is
		has   int64 // newest change that the node returns to majority reads
	}
	known  int64 // newest change that was reported to any client
	reads  int   // reads that were answered
	failed []string
}

// leftOut names the part of fresh reads that a simulation leaves out. The zero value leaves out nothing.
type leftOut int

const (
	_           leftOut = iota
	theBarrier          // reads do not wait for a barrier
	linearizing         // a primary that was voted out answers the barrier, too
	theNext             // a read joins a barrier that was sent before the read arrived
	theTime             // a read accepts a state from before its barrier
)

// asker is a service that answers reads. It has seen all changes up to the number in its field `seen`.
type asker struct {
	*replicas
	wait func(context.Context) error
	seen int64 // guarded by mu
}

var errNoAnswer = errors.New("the node does not answer in time")

// pause lets other goroutines run for up to d.
func (r *replicas) pause(d time.Duration) {
	r.mu.Lock()
	wait := 1 + r.random.Int64N(int64(d))
	r.mu.Unlock()
	time.Sleep(time.Duration(wait))
}

// leader returns a node that believes it is the primary.
func (r *replicas) leader() int {
	for {
		if n := r.random.IntN(len(r.nodes)); r.nodes[n].leads {
			return n
		}
	}
}

// send sends a barrier to a leader. Only the real primary answers it.
func (a *asker) send(context.Context) error {
	a.mu.Lock()
	node := a.leader()
	a.mu.Unlock()
	a.pause(5 * time.Millisecond)
	a.mu.Lock()
	answers, has := node == a.primary || a.leaveOut == linearizing, a.nodes[node].has
	if answers && a.leaveOut != theTime {
		a.seen = max(a.seen, has)
	}
	a.mu.Unlock()
	a.pause(5 * time.Millisecond)
	if !answers {
		return errNoAnswer
	}
	return nil
}

// read reads the newest change. If a client knew of a later change before the read began, the simulation has
// failed.
func (a *asker) read(ctx context.Context) error {
	a.mu.Lock()
	least := a.known
	a.mu.Unlock()
	if a.leaveOut != theBarrier {
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
	a.mu.Lock()
	after, node := a.seen, a.leader()
	a.mu.Unlock()
	for range 10 {
		a.pause(2 * time.Millisecond)
		a.mu.Lock()
		has := a.nodes[node].has
		if has >= after {
			if has < least {
				a.failed = append(a.failed, fmt.Sprintf("F4: node %d showed change %d after a client knew of %d", node, has, least))
			}
			a.known, a.seen, a.reads = max(a.known, has), max(a.seen, has), a.reads+1
			a.mu.Unlock()
			return nil
		}
		a.mu.Unlock()
	}
	return errNoAnswer
}

// live changes data and elects primaries until ctx is done.
func (r *replicas) live(ctx context.Context) {
	for ctx.Err() == nil {
		r.pause(4 * time.Millisecond)
		r.mu.Lock()
		switch n := r.random.IntN(100); {
		case n < 60: // the primary acknowledges a change
			r.written++
			r.nodes[r.primary].has, r.known = r.written, r.written
		case n < 90: // a node learns more, unless it still thinks that it leads
			if f := r.random.IntN(len(r.nodes)); !r.nodes[f].leads {
				r.nodes[f].has = r.written
			}
		case n < 95: // another node is elected
			r.primary = r.random.IntN(len(r.nodes))
			r.nodes[r.primary].leads, r.nodes[r.primary].has = true, r.written
		default: // a deposed primary learns that it was deposed
			if f := r.random.IntN(len(r.nodes)); f != r.primary {
				r.nodes[f].leads = false
			}
		}
		r.mu.Unlock()
	}
}

// hasty is a barrier that a read may join while it is running.
type hasty struct {
	send    func(context.Context) error
	mu      sync.Mutex
	running *round
}

func (h *hasty) wait(ctx context.Context) error {
	h.mu.Lock()
	r, mine := h.running, h.running == nil
	if mine {
		r = &round{done: make(chan struct{})}
		h.running = r
	}
	h.mu.Unlock()
	if mine {
		r.err = h.send(ctx)
		h.mu.Lock()
		h.running = nil
		h.mu.Unlock()
		close(r.done)
	}
	<-r.done
	return r.err
}

const (
	simulated  = 100  // number of simulations
	leastReads = 1000 // least number of reads that one simulation must answer
)

// answered returns how many reads were answered.
func (r *replicas) answered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads
}

// simulateReads lets two services, each with eight readers, read during elections. It takes 3 s. If fewer than
// leastReads reads were answered by then, it goes on for up to 30 s: by chance, primaries that were voted out
// may be asked for a long time, and these reads fail.
func simulateReads(t *testing.T, seed uint64, leaveOut leftOut) *replicas {
	r := &replicas{random: rand.New(rand.NewPCG(seed, 1)), leaveOut: leaveOut}
	r.nodes[0].leads = true
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.live(ctx) })
	for range 2 {
		a := &asker{replicas: r}
		b := newBarrier(a.send)
		a.wait = b.wait
		if leaveOut == theNext {
			a.wait = (&hasty{send: a.send}).wait
		}
		defer b.close()
		for range 8 {
			running.Go(func() {
				for ctx.Err() == nil {
					_ = a.read(ctx) // reads fail during an election
					a.pause(3 * time.Millisecond)
				}
			})
		}
	}
	time.Sleep(3 * time.Second)
	for more := 0; more < 27 && r.answered() < leastReads; more++ {
		time.Sleep(time.Second)
	}
	stop()
	running.Wait()
	return r
}

func TestReadsNeverGoBackInTimeDuringElections(t *testing.T) {
	for seed := range uint64(simulated) {
		synctest.Test(t, func(t *testing.T) {
			r := simulateReads(t, seed, 0)
			if len(r.failed) > 0 {
				t.Errorf("seed %d: got %d violations, want none; the first: %s", seed, len(r.failed), r.failed[0])
			}
			if r.reads < leastReads {
				t.Errorf("seed %d: got %d answered reads, want %d at least", seed, r.reads, leastReads)
			}
		})
	}
}

// TestTheSimulatedElectionsNeedEachPart simulates fresh reads without one of their parts. Without this part, at
// least one simulation must have a read that misses a change.
func TestTheSimulatedElectionsNeedEachPart(t *testing.T) {
	for _, c := range []struct {
		name     string
		leaveOut leftOut
	}{
		{"the barrier", theBarrier},
		{"read concern linearizable", linearizing},
		{"a new barrier for later reads", theNext},
		{"the time of the barrier", theTime},
	} {
		violations := 0
		for seed := uint64(0); seed < simulated && violations == 0; seed++ {
			synctest.Test(t, func(t *testing.T) { violations += len(simulateReads(t, seed, c.leaveOut).failed) })
		}
		if violations == 0 {
			t.Errorf("without %s: got no violation in %d simulations, want one", c.name, simulated)
		}
	}
}
