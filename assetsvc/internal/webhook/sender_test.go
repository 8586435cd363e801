package webhook

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/testing/expect"
)

// inWorld runs a test with one endpoint, named r, and one process.
func inWorld(t *testing.T, c conduct, test func(w *world, r *receiver, p *process)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5)
		r := w.add("r", c)
		p := w.start(0)
		time.Sleep(2 * time.Second)
		test(w, r, p)
		p.close()
		expect.ErrorIf(t, !p.sender.isFree(), "got a slot, memory or a read that was not given back, want all free")
		expect.Equal(t, w.followed, 0, "rings that were not left")
		for _, f := range w.check() {
			t.Error(f)
		}
	})
}

// isFree reports whether a sender that has ended has given back all slots, memory and reads. To find out, isFree
// takes all of them.
func (s *Sender) isFree() bool {
	for _, l := range []lane{s.lanes.fast, s.lanes.slow} {
		if !l.slots.TryAcquire(maxSlots/2) || !l.memory.TryAcquire(l.size) {
			return false
		}
	}
	return s.pages.TryAcquire(maxReads) && s.scans.TryAcquire(maxScans) && len(s.lanes.shares.brokers) == 0
}

// stored reads the endpoint with the id "r" from the store.
func (w *world) stored() Endpoint {
	e := expect.Get(w.store.Endpoint(context.Background(), "r"))(w.t)
	return e
}

// alter changes the endpoint with the id "r" in the store, as the API does.
func (w *world) alter(change func(*Endpoint)) {
	w.t.Helper()
	e := w.stored()
	change(&e)
	expect.OK(w.t, w.store.Put(context.Background(), e))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.receivers {
		r.changed++ // because of the change, a message that is being sent may be sent again
	}
}

// set calls the function `change`, which changes receivers, while it holds the lock.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) wantState(state State, reason Reason) {
	w.t.Helper()
	if e := w.stored(); e.State != state || e.Reason != reason {
		w.t.Errorf("got the state %q for the reason %q, want %q and %q", e.State, e.Reason, state, reason)
	}
}

func (w *world) wantHandled(r *receiver, want int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	expect.Equal(w.t, r.handled, want, "entries up to")
}

func TestTheFirstChangeIsSentAtOnce(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.grow() // a change of a test asset
		time.Sleep(time.Second)
		for range 9 {
			w.grow()
			time.Sleep(10 * time.Millisecond)
		}
		w.mu.Lock()
		if r.messages != 1 || r.handled != 1 {
			t.Errorf("got %d messages up to entry %d, want 1 up to 1", r.messages, r.handled)
		}
		w.mu.Unlock()
		time.Sleep(apart)
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.messages != 2 || r.handled != 9 {
			t.Errorf("got %d messages up to entry %d, want 2 up to 9", r.messages, r.handled)
		}
	})
}

func TestGoneDisables(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.set(func() { r.status = http.StatusGone })
		w.growBy(2)
		time.Sleep(time.Second)
		w.wantState(Disabled, Gone)
		e := w.stored()
		if e.Position != 0 || e.LastError != "failed: 410" || !e.Next.IsZero() {
			t.Errorf("got position %d, error %q, next %v; want 0, the status, none", e.Position, e.LastError, e.Next)
		}
		w.set(func() { r.status = 0 })
		w.alter(func(e *Endpoint) { e.State, e.Reason, e.Failures, e.LastError = Active, "", 0, "" })
		time.Sleep(3 * time.Second)
		w.wantHandled(r, 1)
	})
}

func TestAFailingEndpointIsDisabledAfterThreeDays(t *testing.T) {
	inWorld(t, conduct{fails: 1}, func(w *world, r *receiver, _ *process) {
		w.growBy(2)
		time.Sleep(giveUp - time.Hour)
		w.wantState(Active, "")
		if e := w.stored(); e.Failures < 70 || e.Failures > 200 {
			t.Errorf("got %d failures in three days, want about 100", e.Failures)
		}
		time.Sleep(3 * time.Hour)
		w.wantState(Disabled, Failing)
		w.set(func() { r.fails = 0 })
		time.Sleep(time.Hour)
		w.wantHandled(r, -1)
		w.alter(func(e *Endpoint) { // like a replay
			e.State, e.Reason, e.Failures, e.FailedAt, e.LastError = Active, "", 0, time.Time{}, ""
		})
		time.Sleep(3 * time.Second)
		w.wantHandled(r, 1)
	})
}

func TestASuccessBeginsTheThreeDaysAnew(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		for _, failing := range []time.Duration{giveUp - 5*time.Hour, 10 * time.Hour} {
			w.set(func() { r.fails = 1 })
			w.growBy(2)
			time.Sleep(failing)
			w.set(func() { r.fails = 0 })
			time.Sleep(2 * time.Hour)
		}
		w.wantState(Active, "")
		w.wantHandled(r, 3)
	})
}

func TestTheReceiverSaysWhenToRetry(t *testing.T) {
	inWorld(t, conduct{fails: 1, retries: "1200"}, func(w *world, r *receiver, _ *process) {
		w.growBy(2)
		time.Sleep(time.Minute)
		w.set(func() { r.fails = 0 })
		time.Sleep(18 * time.Minute)
		w.wantHandled(r, -1)
		time.Sleep(2 * time.Minute)
		w.wantHandled(r, 1)
	})
}

func TestAReplayAndAPauseAreSeenWhileMessagesAreUnderWay(t *testing.T) {
	inWorld(t, conduct{takes: 500 * time.Millisecond}, func(w *world, r *receiver, _ *process) {
		for range 200 {
			w.grow()
		}
		time.Sleep(5 * time.Second)
		w.wantHandled(r, 199)
		w.mu.Lock()
		r.handled, r.acked = -1, false // from now on, the receiver expects all entries again, from the first
		from := r.messages
		w.mu.Unlock()
		w.alter(func(e *Endpoint) { e.Position = 0 })
		for underway := 0; underway == 0; time.Sleep(10 * time.Millisecond) {
			w.mu.Lock()
			underway = r.underway
			w.mu.Unlock()
		}
		w.alter(func(e *Endpoint) { e.State, e.Reason = Disabled, Paused })
		time.Sleep(time.Minute)
		w.wantState(Disabled, Paused)
		w.mu.Lock()
		expect.ErrorIf(t, r.handled >= 199, "paused: got entries up to %d, want fewer than all", r.handled)
		w.mu.Unlock()
		w.alter(func(e *Endpoint) { e.State, e.Reason = Active, "" })
		time.Sleep(5 * time.Second)
		w.wantHandled(r, 199)
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := r.messages - from; n < 2 {
			t.Errorf("got %d messages after the replay, want 2 or more", n)
		}
		w.store.faults = nil // these faults do not count: the replay has set the position back
	})
}

// Promises: hook-challenges
func TestNothingIsSentBeforeTheChallengeIsAnswered(t *testing.T) {
	inWorld(t, conduct{fails: 1}, func(w *world, r *receiver, _ *process) {
		w.alter(func(e *Endpoint) { e.State, e.Verified = Unverified, false })
		w.growBy(2)
		time.Sleep(90 * time.Second)
		w.wantState(Unverified, "")
		if e := w.stored(); e.Failures != 2 {
			t.Errorf("got %d challenges in 90 s, want 2", e.Failures)
		}
		w.set(func() { r.fails, r.status = 0, http.StatusNoContent }) // answers lack the text of the challenge
		time.Sleep(5 * time.Minute)
		w.wantState(Unverified, "")
		w.wantHandled(r, -1)
		w.set(func() { r.status = 0 })
		time.Sleep(time.Hour)
		w.wantState(Active, "")
		w.wantHandled(r, 1)
	})
}

// Promises: hook-challenges
func TestAnEndpointThatAnswersNoChallengeIsDisabledAfterADay(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.set(func() { r.status = http.StatusNoContent }) // answers of the receiver lack the text of the challenge
		w.alter(func(e *Endpoint) { e.State, e.Verified = Unverified, false })
		w.growBy(2)
		time.Sleep(answerFor - time.Hour)
		w.wantState(Unverified, "")
		time.Sleep(3 * time.Hour)
		w.wantState(Disabled, Unanswerable)
		w.wantHandled(r, -1)
	})
}

func TestCloseStoresWhatWasAcknowledged(t *testing.T) {
	inWorld(t, conduct{takes: 2 * time.Second}, func(w *world, r *receiver, p *process) {
		w.growBy(2)
		time.Sleep(time.Second)
		begun := time.Now()
		p.close()
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("Close took %v, want at most 4s", took)
		}
		if e := w.stored(); e.Position != w.entries[1].position {
			t.Errorf("got position %d, want %d", e.Position, w.entries[1].position)
		}
		w.grow()
		next := w.start(0) // the term was given back, so this process takes it immediately
		time.Sleep(4 * time.Second)
		w.wantHandled(r, 2)
		next.kill()
	})
}

func TestCloseEndsAMessageThatTakesLong(t *testing.T) {
	inWorld(t, conduct{dead: true}, func(w *world, _ *receiver, p *process) {
		w.growBy(2)
		time.Sleep(time.Second)
		begun := time.Now()
		p.close()
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("Close took %v, want at most 4s", took)
		}
		if e := w.stored(); e.Failures != 0 || e.Position != 0 {
			t.Errorf("got %d failures and position %d, want 0 and 0: it was not the receiver", e.Failures, e.Position)
		}
	})
}

func TestAProcessWithoutTheStoreStopsAtTheEndOfItsTerm(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, p *process) {
		w.set(func() { w.twins = true })
		next := w.start(0)
		p.mu.Lock()
		p.cut = true
		p.mu.Unlock()
		time.Sleep(termTime + 2*renewEvery)
		w.growBy(2)
		time.Sleep(5 * time.Second)
		w.wantHandled(r, 1)
		w.mu.Lock()
		expect.ErrorIf(t, r.messages != 1, "got %d messages, want 1: of the next process only", r.messages)
		w.mu.Unlock()
		next.kill()
	})
}

// slowFeed is a feed in which each search for a match takes a second.
type slowFeed struct {
	Feed
	looked []string // the mode of each search
}

func (f *slowFeed) Find(_ context.Context, mode string, _ assetfilter.Set, after int64) (Found, error) {
	f.looked = append(f.looked, mode)
	time.Sleep(time.Second)
	return Found{Upto: after + 1, More: true}, nil
}

// TestBrokersTakeTurnsToLook has a broker with twenty endpoints that are behind, and two brokers with one such
// endpoint each. The searches for these two brokers must be among the first four.
func TestBrokersTakeTurnsToLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := &slowFeed{}
		s := &Sender{feed: feed, scanning: newShares(1), scans: semaphore.NewWeighted(maxScans)}
		look := func(broker string) {
			w := &worker{t: &tenure{s: s}, waiting: t.Context(), e: Endpoint{Broker: broker, Mode: broker}}
			if _, err := w.scan(); err != nil {
				t.Error(err)
			}
		}
		for range 20 {
			go look("many")
		}
		synctest.Wait()
		go look("one")
		go look("another")
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		place := func(broker string) int { return slices.Index(feed.looked, broker) }
		if len(feed.looked) != 22 || place("one") > 3 || place("another") > 3 {
			t.Errorf("got the order %v, want the brokers with one endpoint among the first four", feed.looked)
		}
	})
}
