package webhook

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

var kills = flag.Int("webhook.kills", 120, "kills of the simulation")

// conducts lists the ways in which the receivers of the simulation behave.
func conducts() []conduct {
	return []conduct{
		{takes: time.Millisecond}, {takes: 50 * time.Millisecond}, {takes: 700 * time.Millisecond},
		{takes: 10 * time.Millisecond, fails: 0.3}, {takes: 10 * time.Millisecond, drops: 0.3},
		{takes: 10 * time.Millisecond, fails: 0.1, retries: "7"}, {takes: 9 * time.Second}, {dead: true},
		{takes: 20 * time.Second}, {takes: 100 * time.Millisecond, fails: 0.1, drops: 0.1},
	}
}

// heal makes all receivers answer quickly, and waits until they have the whole feed.
func (w *world) heal(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	for _, r := range w.receivers {
		r.conduct, r.status = conduct{takes: time.Millisecond}, 0
	}
	w.mu.Unlock()
	for range 300 {
		if w.lacks() == 0 {
			return
		}
		time.Sleep(time.Minute)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faultf("got %d receivers without the whole feed after hours, want 0 (W1)", len(w.receivers))
}

// feed adds changes in bursts, with pauses between the bursts, until the channel `stop` is closed.
func (w *world) feed(stop chan struct{}) {
	for {
		w.mu.Lock()
		burst, quiet := 1+w.rand.IntN(20), time.Duration(w.rand.IntN(4000))*time.Millisecond
		if w.chance(0.01) {
			burst = 300
		}
		w.mu.Unlock()
		for range burst {
			w.grow()
			time.Sleep(time.Millisecond)
		}
		select {
		case <-stop:
			return
		case <-time.After(quiet):
		}
	}
}

// simulated runs a world with a receiver of each conduct, whose feed grows while the function `course` runs. Afterwards
// all receivers must get the whole feed. It returns all faults.
func simulated(t *testing.T, seed uint64, change func(*world), course func(*world) []*process) (w *world, faults []string) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed)
		w.small = true
		change(w)
		for i, c := range conducts() {
			w.add(fmt.Sprintf("r%d", i), c)
		}
		stop := make(chan struct{})
		go w.feed(stop)
		left := course(w)
		close(stop)
		time.Sleep(time.Minute)
		if left == nil {
			left = []*process{w.start(0)}
		}
		w.heal(t)
		for _, p := range left {
			p.close()
		}
		faults = w.check()
		for _, r := range w.receivers {
			expect.ErrorIf(t, r.messages == 0, "endpoint %s: got no message, want some", r.id)
		}
	})
	return w, faults
}

// simulate kills the sender at random steps, again and again. It returns all faults.
func simulate(t *testing.T, seed uint64, kills int, change func(*world)) []string {
	w, faults := simulated(t, seed, change, func(w *world) []*process {
		w.add("rt", conduct{takes: time.Millisecond})
		w.add("r-of-b1", conduct{takes: 50 * time.Millisecond, fails: 0.1, drops: 0.1})
		w.add("r-of-seldom", conduct{takes: time.Millisecond})
		for range kills {
			w.mu.Lock()
			steps := 4 + w.rand.IntN(120)
			w.mu.Unlock()
			p := w.start(steps)
			<-p.died
			p.kill()
		}
		return nil
	})
	repeats := 0
	for _, r := range w.receivers {
		if repeats = max(repeats, r.repeats); r.repeats > kills {
			faults = append(faults, fmt.Sprintf("endpoint %s: got %d repeats, want at most %d (W3)", r.id, r.repeats, kills))
		}
	}
	t.Logf("%d changes, %d kills, at most %d repeats of an endpoint", len(w.entries), kills, repeats)
	return faults
}

// TestSimulationKills kills the sender before and after its reads, writes and messages. No receiver may find a
// fault.
func TestSimulationKills(t *testing.T) {
	for _, f := range simulate(t, 1, *kills, func(*world) {}) {
		t.Error(f)
	}
}

// TestSimulationCatchesGuardsThatAreLeftOut switches off one guard after another. Each time the simulation must
// find a fault.
func TestSimulationCatchesGuardsThatAreLeftOut(t *testing.T) {
	for _, c := range []struct {
		name     string
		leaveOut guard
	}{
		{"a position is saved before the acknowledgement", early},
		{"the next message is sent before the save", behind},
		{"a ring says that it covers what it lacks", gappy},
	} {
		t.Run(c.name, func(t *testing.T) {
			mustCatch(t, func(seed uint64) []string {
				return simulate(t, seed, 50, func(w *world) { w.leaveOut = c.leaveOut })
			})
		})
	}
}

// simulateChanges changes endpoints, like the API does, while messages to them are under way.
func simulateChanges(t *testing.T, seed uint64, change func(*world)) []string {
	w, faults := simulated(t, seed, change, func(w *world) []*process {
		p := w.start(0)
		for range 120 {
			w.mu.Lock()
			to := w.receivers[fmt.Sprintf("r%d", w.rand.IntN(len(w.receivers)))]
			pause := time.Duration(w.rand.IntN(3000)) * time.Millisecond
			w.mu.Unlock()
			time.Sleep(pause)
			w.change(to)
		}
		return []*process{p}
	})
	for _, r := range w.receivers {
		expect.ErrorIf(t, r.changed == 0, "endpoint %s: got no change, want some", r.id)
	}
	return faults
}

// TestSimulationChanges verifies that after a change of an endpoint two workers never send at the same time
// (W2), and that at most one message is repeated (W3).
func TestSimulationChanges(t *testing.T) {
	for seed := range uint64(2) {
		for _, f := range simulateChanges(t, seed, func(*world) {}) {
			t.Errorf("seed %d: %s", seed, f)
		}
	}
	mustCatch(t, func(seed uint64) []string {
		return simulateChanges(t, seed, func(w *world) { w.leaveOut = hasty })
	})
}

// mustCatch runs a simulation without one of its guards, with several seeds, until it finds a fault. A single
// run may find no fault, because its course depends on the seed and on Go's scheduler.
func mustCatch(t *testing.T, run func(seed uint64) (faults []string)) {
	t.Helper()
	for seed := range uint64(20) {
		if len(run(seed)) > 0 {
			return
		}
	}
	t.Error("got no fault in 20 simulations without the guard, want one")
}

// simulateStalls runs two processes. Again and again, the process that sends stops for longer than its term, and
// then goes on.
func simulateStalls(t *testing.T, seed uint64, change func(*world)) []string {
	w, faults := simulated(t, seed, change, func(w *world) []*process {
		w.set(func() { w.twins = true })
		both := []*process{w.start(0), w.start(0)}
		for i := range 20 {
			time.Sleep(13 * time.Second)
			both[i%2].freeze(11 * time.Second)
			time.Sleep(14 * time.Second)
			both[i%2].freeze(0)
		}
		return both
	})
	if w.store.term.Number < 10 {
		t.Errorf("got %d terms, want 10 or more", w.store.term.Number)
	}
	return faults
}

// TestSimulationStalls verifies that a process whose term has ended does not undo the progress that another
// process has saved (W4).
func TestSimulationStalls(t *testing.T) {
	for _, f := range simulateStalls(t, 3, func(*world) {}) {
		t.Error(f)
	}
	mustCatch(t, func(seed uint64) []string {
		return simulateStalls(t, seed, func(w *world) { w.store.leaveOut = anyTerm })
	})
}

// TestDeadAndSlowReceiversDelayNoOthers has 50 changes a second. A tenth of the receivers are dead, and another
// tenth are slow. All other receivers must get each change within a second. The time is virtual (testing/synctest),
// so the result does not depend on the machine.
func TestDeadAndSlowReceiversDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		for i := range 200 {
			c := conduct{takes: 20 * time.Millisecond}
			switch i % 10 {
			case 0:
				c = conduct{dead: true}
			case 1:
				c = conduct{takes: 10 * time.Second}
			}
			w.add(fmt.Sprintf("r%03d", i), c)
		}
		p := w.start(0)
		time.Sleep(3 * time.Second)
		for range 50 * 6 {
			w.grow()
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		w.mu.Lock()
		worst, lacking := time.Duration(0), 0
		for _, r := range w.receivers {
			if r.takes == 20*time.Millisecond {
				worst = max(worst, r.worst)
				if w.after(r, r.handled) < len(w.entries) {
					lacking++
				}
			}
		}
		w.mu.Unlock()
		if lacking > 0 || worst > time.Second {
			t.Errorf("got %d healthy receivers that lack changes, the slowest change after %v; want 0, at most 1s",
				lacking, worst)
		}
		if _, behind := p.sender.observe(); behind > time.Second {
			t.Errorf("got changes that wait for the sender for %v, want at most 1s", behind)
		}
		p.kill()
		for _, f := range w.check() {
			t.Error(f)
		}
	})
}
