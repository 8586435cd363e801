package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/testing/expect"
)

// posts returns the number of requests to a receiver.
func (w *world) posts(r *receiver) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.posts
}

// growBy adds n changes at the same moment.
func (w *world) growBy(n int) {
	for range n {
		w.grow()
	}
}

// growByOne adds one change that webhooks of real assets get. If the next change would be of a test asset,
// growByOne adds this change first, and then one more.
func (w *world) growByOne() {
	w.mu.Lock()
	isTest := len(w.entries)%10 == 0
	w.mu.Unlock()
	if isTest {
		w.grow()
	}
	w.grow()
}

// join adds an endpoint while a process runs, and waits until it is known.
func (w *world) join(id string) (r *receiver) {
	w.set(func() { r = w.add(id, conduct{}) })
	time.Sleep(3 * time.Second)
	return r
}

// read returns how often a method of the feed was called: "Page" or "Find".
func (w *world) read(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads[what]
}

// worker returns the worker of an endpoint.
func (p *process) worker(id string) *worker {
	t, _ := p.sender.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.workers[id]
}

// full takes all slots of the sender. The function `leave` gives them back.
func (s *Sender) full(t *testing.T) (leave func()) {
	t.Helper()
	for _, l := range []lane{s.lanes.fast, s.lanes.slow} {
		expect.FatalIf(t, !l.slots.TryAcquire(maxSlots/2), "got a slot in use, want all free")
	}
	return func() {
		s.lanes.fast.slots.Release(maxSlots / 2)
		s.lanes.slow.slots.Release(maxSlots / 2)
	}
}

func TestTheFormerSecretSignsForItsTimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			keys int
			left time.Duration
			want int
		}{
			{"none", 0, 0, 0},
			{"one", 1, -time.Hour, 1},
			{"two", 2, time.Hour, 2},
			{"two, just rotated", 2, overlap, 2},
			{"two, at the end", 2, 0, 1},
			{"two, after the end", 2, -time.Second, 1},
			{"two, by a clock that was a minute ahead", 2, overlap + time.Minute, 1},
			{"two, by a clock that was a minute behind", 2, overlap - time.Minute, 2},
			{"two, by a clock that was ten years ahead", 2, overlap + 10*365*24*time.Hour, 1},
			{"two, by a clock that was ten years behind", 2, overlap - 10*365*24*time.Hour, 1},
			{"two, by a clock that was a year ahead", 2, 365 * 24 * time.Hour, 1},
		} {
			w := &worker{keys: make([]keys, c.keys), e: Endpoint{OldUntil: time.Now().Add(c.left)}}
			expect.Equal(t, len(w.signer()), c.want, "%s, keys", c.name)
		}
	})
}

func TestEachWebhookOfAnAdministratorHasAShare(t *testing.T) {
	names := map[string]bool{}
	for _, e := range []Endpoint{
		{ID: "a", Broker: "b1"}, {ID: "b", Broker: "b1"}, {ID: "c", ByAdmin: true}, {ID: "d", ByAdmin: true},
	} {
		names[payer(e)] = true
	}
	expect.ErrorIf(t, len(names) != 3, "got the shares %v, want one of the broker and two of administrators", names)
}

// TestAWebhookThatCannotBeUnderstoodGetsNothing has a webhook with malformed filters, and one with a seal of
// another registry. Neither may get a message, and the log must say why.
func TestAWebhookThatCannotBeUnderstoodGetsNothing(t *testing.T) {
	for _, c := range []struct {
		name, log, told string
		change          func(*Endpoint)
	}{
		{"filters", "webhook r: ", "", func(e *Endpoint) { e.Filters = "{" }},
		{"a seal", "is sealed with a secret that the registry does not have", errUnopened,
			func(e *Endpoint) { e.Seal, e.OldSeal = newSeal(t, sealsOf(t, "z")), "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, conduct{}, func(w *world, r *receiver, p *process) {
				w.alter(c.change)
				generation := w.stored().Generation
				time.Sleep(3 * time.Second)
				w.growBy(2)
				time.Sleep(5 * time.Second)
				if n := w.posts(r); n > 0 {
					t.Errorf("got %d requests, want none", n)
				}
				if e := w.stored(); e.LastError != c.told || e.Generation != generation {
					t.Errorf("got the error %q and generation %d, want %q and %d", e.LastError, e.Generation, c.told, generation)
				}
				p.close()
				if got := w.warnings(); !strings.Contains(got, c.log) {
					t.Errorf("got the warnings %q, want %q", got, c.log)
				}
			})
		})
	}
}

// TestSealsAreMadeAnewOnce starts a process with seals that the former secret has made, and with a message to
// send. The receiver must get the message once.
func TestSealsAreMadeAnewOnce(t *testing.T) {
	former := sealsOf(t, "a")
	for _, c := range []struct {
		name   string
		change func(*Endpoint, Seals)
		fails  bool // Put fails at first
		anew   bool
	}{
		{"a seal of another registry before", func(e *Endpoint, _ Seals) {
			e.Seal, e.OldSeal = newSeal(t, sealsOf(t, "z")), newSeal(t, former)
		}, false, false},
		{"the seal", func(e *Endpoint, _ Seals) {}, false, true},
		{"the store is down first", func(e *Endpoint, _ Seals) {}, true, true},
		{"the seal before the rotation", func(e *Endpoint, now Seals) {
			e.OldSeal, e.OldUntil, e.Seal = newSeal(t, former), time.Now().Add(time.Hour), newSeal(t, now)
		}, false, true},
		{"of a webhook that is disabled", func(e *Endpoint, _ Seals) { e.State, e.Reason = Disabled, Paused }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5)
				r := w.add("r", conduct{takes: 10 * time.Second})
				now := sealsOf(t, "b", "a")
				w.alter(func(e *Endpoint) { c.change(e, now) })
				w.seals = now
				w.growBy(2)
				before := w.stored()
				if c.fails {
					w.store.fail("Put")
				}
				p := w.start(0)
				time.Sleep(5 * time.Second)
				w.store.fail("")
				if e := w.stored(); c.anew && e.Failures > 0 {
					t.Errorf("got %d failures and %q, want none", e.Failures, e.LastError)
				}
				time.Sleep(20 * time.Second)
				after := w.stored()
				_, anew, err := now.Renew(after.Seal)
				_, oldAnew, oldErr := now.Renew(after.OldSeal)
				old := anew || oldAnew || err != nil || oldErr != nil
				if made := after.Generation > before.Generation; made != c.anew || made && old {
					t.Errorf("got new seals: %t, an old one left: %t; want new ones: %t", made, old, c.anew)
				}
				want := 0
				if c.anew {
					want = 1
					w.wantHandled(r, 1)
				}
				expect.Equal(t, w.posts(r), want, "requests")
				p.close()
				for _, f := range w.check() {
					t.Error(f)
				}
			})
		})
	}
}

// TestAChangeEndsTheMessageUnderWay pauses a webhook while a message to it is under way. The message must end, although
// the test reads the metrics meanwhile.
func TestAChangeEndsTheMessageUnderWay(t *testing.T) {
	inWorld(t, conduct{dead: true}, func(w *world, r *receiver, p *process) {
		w.growBy(2)
		time.Sleep(time.Second)
		w.alter(func(e *Endpoint) { e.State, e.Reason = Disabled, Paused })
		for range 1000 {
			time.Sleep(2 * time.Millisecond)
			p.sender.observe()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.underway > 0 || r.posts != 1 {
			t.Errorf("got %d messages under way of %d, want none of 1", r.underway, r.posts)
		}
	})
}

func TestAWebhookFollowsTheFeedUnlessItRests(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		for range 5 {
			w.growByOne()
			time.Sleep(time.Second)
		}
		w.mu.Lock()
		if r.messages != 5 || w.follows != 1 || w.followed != 1 {
			t.Errorf("got %d messages, %d calls of Follow and %d rings, want 5, 1 and 1", r.messages, w.follows, w.followed)
		}
		r.status, r.retries = http.StatusServiceUnavailable, "3600"
		w.mu.Unlock()
		w.growByOne()
		time.Sleep(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		expect.Equal(t, w.followed, 0, "while it rests, rings")
	})
}

// TestAChangeThatWasNotCountedIsSeenAtTheNextSave changes the endpoint without incrementing Term.Changes, like a Put
// that fails between these two writes. The worker must notice the change when it saves.
func TestAChangeThatWasNotCountedIsSeenAtTheNextSave(t *testing.T) {
	for _, status := range []int{0, http.StatusInternalServerError} {
		inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
			w.uncounted("r", func(e *Endpoint) { e.Generation++ })
			w.set(func() { r.status, r.changed = status, 1 })
			w.growBy(2)
			time.Sleep(20 * time.Second)
			if e := w.stored(); status == 0 && e.Position != w.entries[1].position || status != 0 && e.Failures == 0 {
				t.Errorf("got position %d and %d failures, want the outcome of the message stored", e.Position, e.Failures)
			}
			if n := w.posts(r); n > 8 {
				t.Errorf("got %d requests, want a few", n)
			}
		})
	}
}

// TestAChangeThatWasNotCountedIsSeenAfterAChallenge disables the endpoint, without incrementing Term.Changes,
// while a challenge is under way. No more challenges may be sent.
func TestAChangeThatWasNotCountedIsSeenAfterAChallenge(t *testing.T) {
	for _, status := range []int{0, http.StatusInternalServerError} {
		inWorld(t, conduct{takes: 2 * time.Second}, func(w *world, r *receiver, p *process) {
			w.set(func() { r.status = status })
			w.alter(func(e *Endpoint) { e.State, e.Verified = Unverified, false })
			time.Sleep(1500 * time.Millisecond)
			w.uncounted("r", func(e *Endpoint) { e.State, e.Reason, e.Generation = Disabled, Paused, e.Generation+1 })
			time.Sleep(4 * time.Second)
			if counts, _ := p.sender.observe(); counts[string(Disabled)] != 1 || w.posts(r) != 1 {
				t.Errorf("after an answer of %d: got %v and %d challenges, want the webhook disabled after 1", status, counts,
					w.posts(r))
			}
		})
	}
}

// Promises: hook-challenges
func TestTheOwnerSeesWhyAChallengeFailed(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		w.set(func() { r.status = http.StatusTeapot })
		w.alter(func(e *Endpoint) { e.State, e.Verified = Unverified, false })
		time.Sleep(3 * time.Second)
		if e := w.stored(); e.LastError != "failed: 418" || e.Failures != 1 {
			t.Errorf("got %q after %d failures, want the status after 1", e.LastError, e.Failures)
		}
		for range 10 { // changes of the address
			w.alter(func(e *Endpoint) { e.Next = time.Time{} })
			time.Sleep(3 * time.Second)
		}
		expect.Equal(t, w.posts(r), 1, "challenges in 33 s")
		time.Sleep(20 * time.Minute)
		w.set(func() { r.status = 0 })
		for e := w.stored(); time.Until(e.Next) < 90*time.Second; e = w.stored() {
			time.Sleep(time.Second) // the loop ends when the next attempt is at least 90 s away
			w.set(func() { r.status = http.StatusTeapot })
		}
		time.Sleep(61 * time.Second)
		w.set(func() { r.status = 0 })
		w.alter(func(e *Endpoint) { e.Next = time.Time{} })
		time.Sleep(3 * time.Second)
		w.wantState(Active, "")
		if e := w.stored(); e.Failures != 0 || e.LastError != "" || e.Succeeded.IsZero() {
			t.Errorf("got %d failures, %q, success at %v; want none, and a success", e.Failures, e.LastError, e.Succeeded)
		}
	})
}

func TestCloseDuringAChallengeIsNoFailure(t *testing.T) {
	inWorld(t, conduct{dead: true}, func(w *world, r *receiver, p *process) {
		w.alter(func(e *Endpoint) { e.State, e.Verified = Unverified, false })
		time.Sleep(2 * time.Second)
		p.close()
		if e := w.stored(); e.Failures != 0 || w.posts(r) != 1 {
			t.Errorf("got %d failures and %d challenges, want 0 and 1: it was not the receiver", e.Failures, w.posts(r))
		}
	})
}

// TestASlowReceiverHasTheOtherLane has a receiver that takes exactly slowAfter and one that takes longer. Only
// the second must count as slow. A change that is larger than a usual message must use the slow lane.
func TestASlowReceiverHasTheOtherLane(t *testing.T) {
	for takes, slow := range map[time.Duration]bool{slowAfter: false, slowAfter + time.Millisecond: true} {
		inWorld(t, conduct{takes: takes}, func(w *world, r *receiver, p *process) {
			worker := p.worker("r")
			w.set(func() { w.large[1] = 2 * usual })
			w.growBy(2)
			time.Sleep(slowAfter / 2)
			if slow := p.sender.lanes.slow; slow.memory.TryAcquire(slow.size - usual) {
				t.Error("while a large change is sent: got all memory free but what a usual message needs, want less")
			}
			time.Sleep(5 * time.Second)
			w.growBy(1)
			time.Sleep(5 * time.Second)
			w.wantHandled(r, 2)
			p.close()
			if worker.slow != slow || worker.need != usual {
				t.Errorf("a receiver that takes %v: got slow %t and a need of %d bytes, want %t and %d", takes, worker.slow,
					worker.need, slow, usual)
			}
		})
	}
}

// collected returns the values of the metrics: counters by result, gauges by state or name, and the number of
// recorded delays.
func collected(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var read metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(context.Background(), &read))
	got := map[string]float64{}
	for _, m := range read.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				result, _ := point.Attributes.Value("result")
				got[result.AsString()] = float64(point.Value)
			}
		case metricdata.Gauge[int64]:
			for _, point := range data.DataPoints {
				state, _ := point.Attributes.Value("state")
				got[state.AsString()] = float64(point.Value)
			}
		case metricdata.Gauge[float64]:
			got[m.Name] = data.DataPoints[0].Value
		case metricdata.Histogram[float64]:
			got["delays"] = float64(data.DataPoints[0].Count)
		}
	}
	return got
}

func TestMetricsTellOfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		w := newWorld(t, 5)
		w.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
		w.growBy(2)
		r := w.add("r", conduct{})
		p := w.start(0)
		const behind = "registry.webhooks.behind"
		want := func(when string, want map[string]float64) {
			t.Helper()
			expect.NoDiff(t, cmp.Diff(want, collected(t, reader)), "%s: the metrics differ", when)
		}
		time.Sleep(2 * time.Second)
		want("a message from a page", map[string]float64{
			"ok": 1, "failed": 0, "refused": 0, "unverified": 0, "active": 1, "failing": 0, "disabled": 0, behind: 0,
		})
		w.growByOne()
		time.Sleep(time.Second)
		w.set(func() { r.status = http.StatusInternalServerError })
		w.growByOne()
		time.Sleep(400 * time.Millisecond)
		want("a message that failed", map[string]float64{
			"ok": 2, "failed": 1, "refused": 0, "unverified": 0, "active": 0, "failing": 1, "disabled": 0, behind: 0,
			"delays": 1,
		})
		w.set(func() { r.status = http.StatusGone })
		time.Sleep(3 * time.Second)
		want("a receiver that is gone", map[string]float64{
			"ok": 2, "failed": 2, "refused": 0, "unverified": 0, "active": 0, "failing": 0, "disabled": 1, behind: 0,
			"delays": 1,
		})
		p.sender.metrics.sent(answer{fault: errNotPublic.Error(), guard: true})
		p.mu.Lock()
		p.cut = true
		p.mu.Unlock()
		time.Sleep(termTime - time.Second)
		expect.Equal(t, collected(t, reader)[behind], 0, "before the end of the term, s behind")
		time.Sleep(time.Minute)
		got := collected(t, reader)
		if _, has := got["disabled"]; has || got[behind] < 60 || got[behind] > 75 || got["refused"] != 1 {
			t.Errorf("without the store for 69 s: got %v, want no states and about 70 s behind", got)
		}
		p.close()
		if told := strings.Count(w.warnings(), "a webhook is disabled"); told != 1 {
			t.Errorf("got %d warnings of a webhook that is disabled, want 1:\n%s", told, w.warnings())
		}
	})
}

// warnings returns the log, after all goroutines have finished or wait.
func (w *world) warnings() string {
	synctest.Wait()
	return w.lines.String()
}

func TestStatesAndTimesOfMetrics(t *testing.T) {
	for want, e := range map[string]Endpoint{
		"active":     {Progress: Progress{State: Active}},
		"failing":    {Progress: Progress{State: Active, Failures: 1}},
		"disabled":   {Progress: Progress{State: Disabled, Failures: 1}},
		"unverified": {Progress: Progress{State: Unverified, Failures: 1}},
	} {
		expect.Equal(t, stateOf(e), want, "%+v, the state", e.Progress)
	}
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	if a, b := later(early, late), later(late, early); a != late || b != late {
		t.Errorf("got %v and %v, want %v", a, b, late)
	}
}

func TestWordsForFaults(t *testing.T) {
	for want, err := range map[string]error{
		errNotPublic.Error():                    fmt.Errorf("dial: %w", errNotPublic),
		"the receiver did not answer in time":   fmt.Errorf("read: %w", context.DeadlineExceeded),
		"the connection to the receiver failed": errors.New("reset"),
	} {
		expect.Equal(t, faultOf(err), want, "%v", err)
	}
	if got := faultOf(&net.DNSError{Err: "no such host", IsTimeout: true}); got != errNotPublic.Error() {
		t.Errorf("a name that does not resolve: got %q, want %q, which tells nothing of the name", got, errNotPublic)
	}
	for is, want := range map[bool]string{
		true: "the receiver did not answer in time", false: "the connection to the receiver failed",
	} {
		expect.Equal(t, faultOf(&net.OpError{Op: "read", Err: timeout(is)}), want, "an error that is a timeout, %t", is)
	}
}

// timeout is a network error; its value is what the method Timeout returns.
type timeout bool

func (t timeout) Error() string { return "a fault" }

func (t timeout) Timeout() bool { return bool(t) }

func (t timeout) Temporary() bool { return false }

// TestWhoStopsWaitingHoldsNothing gives up waiting for a slot, for memory and for the share of a broker. After
// that, no slot or memory may stay reserved.
func TestWhoStopsWaitingHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes(0)
		first, err := l.enter(t.Context(), "a", true, l.slow.size)
		expect.OK(t, err)
		within := func(broker string) (*slot, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return l.enter(ctx, broker, true, 1)
		}
		for _, what := range []string{"memory", "slots"} {
			if in, err := within("b"); !errors.Is(err, context.DeadlineExceeded) || in != nil {
				t.Errorf("%s: got %v, %v; want %v", what, in, err, context.DeadlineExceeded)
			}
			if n := len(l.shares.brokers); n != 1 {
				t.Errorf("%s: got shares of %d brokers, want only the share of the first one", what, n)
			}
			if what == "memory" && !l.slow.slots.TryAcquire(maxSlots/2-1) {
				t.Fatal("got fewer slots free than all but one")
			}
		}
		l.slow.slots.Release(maxSlots/2 - 1)
		first.leave()
		s := newShares(2)
		stays, err1 := s.enter(t.Context(), "a")
		leave, err2 := s.enter(t.Context(), "a")
		expect.OK(t, errors.Join(err1, err2))
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			expect.ErrOf(t, context.DeadlineExceeded, "above the share")(s.enter(ctx, "a"))
			cancel()
		}
		leave()
		if leave, err = s.enter(t.Context(), "a"); err != nil {
			t.Errorf("a slot that was given back: got %v, want none", err)
		}
		leave()
		stays()
	})
}

// TestWithoutASlot takes all slots. Changes that a webhook does not want must still move its position on, and a
// change that it wants must count as waiting for the sender.
func TestWithoutASlot(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, p *process) {
		filtered := w.join("f-of-seldom")
		w.growBy(2)
		time.Sleep(time.Second)
		w.wantHandled(r, 1)
		w.growBy(8)
		time.Sleep(time.Second)
		leave := p.sender.full(t)
		w.grow() // a change of a test asset
		late := w.join("g-of-nobody")
		time.Sleep(keepEvery + 2*time.Minute)
		w.mu.Lock()
		last := w.entries[len(w.entries)-1].position
		w.mu.Unlock()
		if e := w.stored(); e.Position != last {
			t.Errorf("got position %d, want %d: after a change that nobody gets", e.Position, last)
		}
		if e, err := w.store.Endpoint(t.Context(), late.id); err != nil || e.Position != last {
			t.Errorf("a webhook that was behind: got position %d, %v; want %d", e.Position, err, last)
		}
		w.grow()
		time.Sleep(2 * time.Minute)
		if _, behind := p.sender.observe(); behind < 119*time.Second || behind > 121*time.Second {
			t.Errorf("got a change that waits for %v, want about two minutes", behind)
		}
		e, err := w.store.Endpoint(t.Context(), filtered.id)
		if err != nil || e.Position <= last {
			t.Errorf("the filtered webhook: got position %d, %v; want one after %d", e.Position, err, last)
		}
		leave()
		time.Sleep(time.Second)
		if _, behind := p.sender.observe(); behind > 0 {
			t.Errorf("after the message: got a change that waits for %v, want none", behind)
		}
		w.store.fail("Save")
		w.grow()
		time.Sleep(10 * time.Second)
		if _, behind := p.sender.observe(); behind < 9*time.Second {
			t.Errorf("while the store is down: got a change that waits for %v, want about 10 s", behind)
		}
		w.store.fail("")
		time.Sleep(time.Second)
	})
}

// TestCloseDoesNotWaitForASlot closes a process while a message and a challenge wait for slots. Neither may be
// sent.
func TestCloseDoesNotWaitForASlot(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, p *process) {
		leave := p.sender.full(t)
		var fresh *receiver
		w.set(func() { fresh = w.add("s", conduct{}) })
		w.uncounted("s", func(e *Endpoint) { e.State, e.Verified = Unverified, false })
		w.growBy(2)
		time.Sleep(3 * time.Second)
		p.close()
		leave()
		if w.posts(r)+w.posts(fresh) > 0 {
			t.Errorf("got %d messages and %d challenges, want none", w.posts(r), w.posts(fresh))
		}
	})
}

// TestARingIsReadWithoutPages adds many more changes than the ring holds, one after the other. The worker must
// read them from the ring and not from pages.
func TestARingIsReadWithoutPages(t *testing.T) {
	for _, id := range []string{"s", "f-of-b1"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5)
			w.size = 4 << 10
			r := w.add(id, conduct{})
			p := w.start(0)
			time.Sleep(2 * time.Second)
			for range 300 {
				w.grow()
				time.Sleep(time.Second)
			}
			if n := w.lacks(); n > 0 || r.messages < 80 {
				t.Errorf("%s: got %d messages, and lacks: %d; want all", id, r.messages, n)
			}
			if pages, finds := w.read("Page"), w.read("Find"); pages+finds > 1 {
				t.Errorf("%s: got %d pages and %d looks for matches, want the ring only", id, pages, finds)
			}
			p.close()
		})
	}
}

// TestCatchingUpIsQuick has webhooks whose positions are a thousand changes behind. Each must catch up within a short
// time, and with few reads.
func TestCatchingUpIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5)
		w.growBy(1000)
		all := w.add("all", conduct{})
		p := w.start(0)
		time.Sleep(time.Second)
		w.wantHandled(all, 999)
		if n := w.read("Find"); n > 0 {
			t.Errorf("without filters: got %d looks for matches, want none", n)
		}
		pages := w.read("Page")
		w.join("f-of-nobody")
		if n := w.read("Page") - pages; n > 0 || w.read("Find") < 90 {
			t.Errorf("filters that nothing meets: got %d pages and %d looks for matches, want none and all", n, w.read("Find"))
		}
		var seldom *receiver
		w.set(func() { seldom = w.add("f-of-seldom", conduct{}) })
		for w.posts(seldom) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(apart)          // a page with few matches is full: no wait follows its message
		w.wantHandled(seldom, 975) // the last number of the form 5+97*n
		if n := w.read("Page") - pages; n > 20 {
			t.Errorf("filters that 9 changes meet: got %d pages, want about as many", n)
		}
		w.set(func() { w.findMost, w.moved = 1000, 5 }) // so the page from change 5 on is empty, but the feed goes on
		rare := w.join("f-of-rare")
		w.wantHandled(rare, 999)
		w.set(func() { w.findMost, w.findTakes = 0, time.Second })
		finds := w.read("Find")
		w.join("g-of-nobody")
		time.Sleep(17 * time.Second)
		if n := w.read("Find") - finds; n < 8 || n > 11 {
			t.Errorf("got %d looks of a second in 20 s, want about 10", n)
		}
		p.close()
	})
}

// TestOnlyTestsAreBehind has a webhook that gets only changes of real assets. The feed has one change, of a test asset.
// The sender must not count this change as waiting.
func TestOnlyTestsAreBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5)
		w.grow()
		r := w.add("r", conduct{})
		p := w.start(0)
		time.Sleep(time.Minute)
		if n := w.read("Page"); n > 2 {
			t.Errorf("got %d pages in a minute, want the first only", n)
		}
		if _, behind := p.sender.observe(); behind > 0 {
			t.Errorf("got a change that waits for %v, want none", behind)
		}
		w.grow()
		time.Sleep(100 * time.Millisecond)
		w.wantHandled(r, 1)
		p.close()
	})
}

// TestAFeedThatFailsIsReadAgain makes a method of the feed fail for ten seconds. The worker must call it about
// once a second, and later send all changes.
func TestAFeedThatFailsIsReadAgain(t *testing.T) {
	for _, c := range []struct{ call, id string }{{"Page", "all"}, {"Find", "f-of-seldom"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5)
			w.growBy(200)
			r := w.add(c.id, conduct{})
			w.feedFails = c.call
			p := w.start(0)
			time.Sleep(10 * time.Second)
			if n := w.read(c.call); n < 8 || n > 12 {
				t.Errorf("%s: got it called %d times in 10 s, want about once a second", c.call, n)
			}
			w.set(func() { w.feedFails = "" })
			time.Sleep(5 * time.Second)
			if n := w.lacks(); n > 0 {
				t.Errorf("%s: got changes up to %d, want all", c.call, r.handled)
			}
			p.close()
			expect.ErrorIf(t, !p.sender.isFree(), "%s: got a slot that was not given back, want all free", c.call)
			if got := w.warnings(); !strings.Contains(got, "the feed is down") {
				t.Errorf("%s: got the warnings %q, want that the feed is down", c.call, got)
			}
		})
	}
}

// TestWithoutARingPagesAreRead has a feed without rings. A webhook without filters must get its changes from pages. For
// filters that nothing meets, no page may be read.
func TestWithoutARingPagesAreRead(t *testing.T) {
	for _, c := range []struct {
		id, reads, never string
		handled          int
	}{{"r", "Page", "Find", 1}, {"f-of-nobody", "Find", "Page", -1}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5)
			w.feedFails = "Follow"
			r := w.add(c.id, conduct{})
			p := w.start(0)
			time.Sleep(3 * time.Second)
			w.growBy(2)
			time.Sleep(poll + 100*time.Millisecond)
			w.wantHandled(r, c.handled)
			time.Sleep(time.Minute)
			if n, never := w.read(c.reads), w.read(c.never); n < 55 || n > 70 || never > 0 {
				t.Errorf("%s: got %d calls of %s in a minute, and %d of %s; want about one a second, and none",
					c.id, n, c.reads, never, c.never)
			}
			p.close()
		})
	}
}

// TestManyUnwantedChangesAreReadTogether adds a change each millisecond. The webhook wants none of these changes.
// Its worker must read the ring about twice in the time `calm`, and not for each change.
func TestManyUnwantedChangesAreReadTogether(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, _ *receiver, p *process) {
		w.join("f-of-nobody")
		worker, steps := p.worker("f-of-nobody"), map[int64]bool{}
		for range 20 * calm / time.Millisecond {
			w.grow()
			time.Sleep(time.Millisecond)
			synctest.Wait() // so that the worker waits while its field is read
			steps[worker.at] = true
		}
		if n := len(steps); n < 30 || n > 50 {
			t.Errorf("got %d positions in %v, want about 40", n, 20*calm)
		}
	})
}

// TestAWantedChangeAmongOthersIsSent adds changes of three owners at the same moment. The webhook must get the
// changes of one owner only.
func TestAWantedChangeAmongOthersIsSent(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, _ *receiver, _ *process) {
		filtered := w.join("f-of-b1")
		w.growBy(1)
		time.Sleep(time.Second)
		w.growBy(7) // changes 1, 4 and 7 are of b1
		time.Sleep(500 * time.Millisecond)
		w.wantHandled(filtered, 7)
		w.growBy(6)
		time.Sleep(500 * time.Millisecond)
		w.wantHandled(filtered, 13)
	})
}

// TestAPositionIsStoredNowAndThen counts how often the positions of two webhooks are saved. One webhook has no
// filters, and the other has filters that no change meets. Each message must save the position. A change without a
// message must save it only if the last save is long ago (worker.keepEvery).
func TestAPositionIsStoredNowAndThen(t *testing.T) {
	inWorld(t, conduct{}, func(w *world, r *receiver, _ *process) {
		filtered := w.join("f-of-nobody")
		saves := func(id string) int64 {
			return expect.Get(w.store.Endpoint(t.Context(), id))(t).Saves
		}
		time.Sleep(time.Hour)
		if all, some := saves(r.id), saves(filtered.id); all+some > 0 {
			t.Errorf("an hour without a change: got %d and %d saves, want none", all, some)
		}
		w.growBy(9)
		time.Sleep(time.Second)
		w.wantHandled(r, 8)
		w.grow()
		time.Sleep(time.Minute)
		all, some := saves(r.id), saves(filtered.id)
		for range 8 {
			w.grow() // changes 10 to 17; r gets all but change 10
			time.Sleep(time.Minute)
		}
		if n := saves(filtered.id) - some; n < 6 || n > 9 {
			t.Errorf("8 minutes with a change each that nobody wants: got %d saves, want about 8", n)
		}
		expect.Equal(t, saves(r.id)-all, 7, "7 messages, saves")
		for len(w.entries)%10 != 0 {
			w.grow()
		}
		time.Sleep(time.Second)
		all = saves(r.id)
		time.Sleep(keepEvery / 2)
		w.grow() // a change of a test asset
		test := w.entries[len(w.entries)-1].position
		time.Sleep(keepEvery/2 + 30*time.Second)
		if e := w.stored(); e.Position != test || e.Saves != all+1 {
			t.Errorf("got position %d after %d saves, want %d after one", e.Position, e.Saves-all, test)
		}
	})
}
