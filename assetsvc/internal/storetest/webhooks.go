package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
)

// WebhookStore is a registry.Store that also stores webhooks.
type WebhookStore interface {
	registry.Store
	webhook.Store
}

type openWebhooks = func(t *testing.T, name string, now func() time.Time) WebhookStore

// RunWebhooks checks that a store keeps the contract of webhook.Store.
func RunWebhooks(t *testing.T, open openWebhooks) {
	for _, c := range []struct {
		name string
		test func(*testing.T, openWebhooks)
	}{
		{"an endpoint is stored whole, and is there after a restart", testEndpoint},
		{"endpoints are listed in the order of their ids, by broker", testEndpoints},
		{"a change needs the newest endpoint", testStalePut},
		{"one process has the term", testTerm},
		{"a term of a wrong clock ends", testTermOfAWrongClock},
		{"progress is saved in the newest term only", testSave},
		{"of processes that take the term at once, one gets it", testTermRace},
		{"changes and saved progress do not undo each other", testPutRace},
		{"a broker has no more endpoints than it may have", testBrokerBound},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// at0 is a time in whole milliseconds.
var at0 = time.Date(2026, 11, 20, 12, 0, 0, 7e6, time.UTC)

// endpoint returns an endpoint whose fields are all set.
func endpoint(id, broker string) webhook.Endpoint {
	return webhook.Endpoint{
		ID: id, Broker: broker, KeyID: "key-" + broker, URL: "https://example.org/" + id, Version: "2.5", Mode: "test",
		Whole: true, Filters: `{"region":["Одеська"]}`,
		Seal: "sealed " + id, OldSeal: "sealed before", OldUntil: at0.Add(time.Hour), Created: at0,
		Request: "fingerprint", Same: "1:fingerprint",
		Progress: webhook.Progress{
			Position: 1_800_000_000_000_001, State: webhook.Disabled, Reason: webhook.Failing, Verified: true, Failures: 7,
			FailedAt: at0.Add(1), LastError: "the receiver answered 500", Next: at0.Add(time.Minute),
			Succeeded: at0.Add(-time.Hour),
		},
	}
}

func mustPut(t *testing.T, s webhook.Store, e webhook.Endpoint) webhook.Endpoint {
	t.Helper()
	if err := s.Put(t.Context(), e); err != nil {
		t.Fatalf("put %s: %v", e.ID, err)
	}
	e.Generation++
	return e
}

// millis compares times in milliseconds, the precision in which a webhook.Store keeps them.
var millis = cmp.Comparer(func(a, b time.Time) bool {
	return a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond))
})

func checkEndpoint(t *testing.T, s webhook.Store, want webhook.Endpoint) {
	t.Helper()
	got, err := s.Endpoint(t.Context(), want.ID)
	if err != nil {
		t.Fatalf("endpoint %s: %v", want.ID, err)
	}
	if diff := cmp.Diff(want, got, millis); diff != "" {
		t.Errorf("endpoint %s differs (-want +got):\n%s", want.ID, diff)
	}
}

func mustLead(t *testing.T, s webhook.Store, holder string, now time.Time) webhook.Term {
	t.Helper()
	term, held, err := s.Lead(t.Context(), holder, now, now.Add(10*time.Second))
	if err != nil || !held {
		t.Fatalf("lead as %s: got %+v, held %t, %v; want held", holder, term, held, err)
	}
	return term
}

func testEndpoint(t *testing.T, open openWebhooks) {
	s := open(t, "a", at(start))
	full := endpoint("a1", "b1")
	if _, err := s.Endpoint(t.Context(), full.ID); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("an endpoint that does not exist: got %v, want ErrNotFound", err)
	}
	full = mustPut(t, s, full)
	least := mustPut(t, s, webhook.Endpoint{ID: "a2", Broker: "b1", ByAdmin: true})
	checkEndpoint(t, s, full)
	checkEndpoint(t, s, least)
	if got, _ := s.Endpoint(t.Context(), least.ID); !got.Next.IsZero() || got.Created.Location() != time.UTC {
		t.Errorf("times that are not set: got %v and %v, want the zero time in UTC", got.Next, got.Created)
	}
	full.URL, full.Position, full.Reason = "https://example.org/new", 5, webhook.Paused
	full = mustPut(t, s, full)
	before := mustLead(t, s, "p", at0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	checkEndpoint(t, s, full)
	after := mustLead(t, s, "q", at0.Add(time.Minute))
	if after.Number <= before.Number || after.Changes != before.Changes {
		t.Errorf("the term after a restart: got %+v, want a higher number than %+v and the same changes", after, before)
	}
	if err := s.Remove(t.Context(), full.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), full.ID); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("remove twice: got %v, want ErrNotFound", err)
	}
	if _, err := s.Endpoint(t.Context(), full.ID); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("a removed endpoint: got %v, want ErrNotFound", err)
	}
	if term := mustLead(t, s, "q", at0.Add(time.Minute)); term.Changes != after.Changes+1 {
		t.Errorf("changes after a removal: got %d, want %d", term.Changes, after.Changes+1)
	}
}

func testEndpoints(t *testing.T, open openWebhooks) {
	s := open(t, "a", at(start))
	want := map[string][]string{} // broker -> ids; "" -> the ids of all brokers
	brokers := []string{"b", "b1", "c"}
	for i := range 20 {
		e := endpoint(fmt.Sprintf("%04x", i*7919%65536), brokers[i%3])
		e.ByAdmin = i%4 == 0
		mustPut(t, s, e)
		want[""] = append(want[""], e.ID)
		if !e.ByAdmin {
			want[e.Broker] = append(want[e.Broker], e.ID)
		}
	}
	for _, broker := range append(brokers, "", "nobody") {
		slices.Sort(want[broker])
		var got []string
		for after := ""; ; {
			page, err := s.Endpoints(t.Context(), broker, after, 3)
			if err != nil || len(page) > 3 {
				t.Fatalf("got %d endpoints and %v, want at most 3", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				got = append(got, e.ID)
			}
			after = page[len(page)-1].ID
		}
		if diff := cmp.Diff(want[broker], got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the endpoints of broker %q differ (-want +got):\n%s", broker, diff)
		}
	}
}

func testStalePut(t *testing.T, open openWebhooks) {
	s := open(t, "a", at(start))
	fresh := endpoint("a1", "b1")
	first := mustPut(t, s, fresh)
	second := mustPut(t, s, first)
	unknown := endpoint("a2", "b1")
	unknown.Generation = 1
	for _, c := range []struct {
		name string
		put  webhook.Endpoint
	}{{"a new endpoint with the same id", fresh}, {"the generation before", first}, {"no endpoint", unknown}} {
		if err := s.Put(t.Context(), c.put); !errors.Is(err, webhook.ErrStale) {
			t.Errorf("%s: got %v, want ErrStale", c.name, err)
		}
	}
	checkEndpoint(t, s, second)
	term := mustLead(t, s, "p", at0)
	if term.Changes != 2 {
		t.Errorf("changes: got %d, want 2, those that were stored", term.Changes)
	}
	step := webhook.Step{ID: second.ID, Generation: second.Generation, Progress: webhook.Progress{Position: 9}}
	if stale, err := s.Save(t.Context(), term.Number, []webhook.Step{step}); err != nil || len(stale) > 0 {
		t.Fatalf("save: got %v, %v; want nothing stale", stale, err)
	}
	if err := s.Put(t.Context(), second); !errors.Is(err, webhook.ErrStale) {
		t.Errorf("a change of an endpoint whose progress was saved since: got %v, want ErrStale", err)
	}
	second.Saves, second.Progress = 1, step.Progress
	checkEndpoint(t, s, second)
	checkEndpoint(t, s, mustPut(t, s, second))
}

func testTerm(t *testing.T, open openWebhooks) {
	s := open(t, "a", at(start))
	const long = 10 * time.Second
	first := mustLead(t, s, "p", at0)
	if first.Number < 1 || !first.Until.Equal(at0.Add(long)) {
		t.Errorf("got %+v, want a number above 0, until %v", first, at0.Add(long))
	}
	other, held, err := s.Lead(t.Context(), "q", at0.Add(long-1e6), at0.Add(2*long))
	if err != nil || held || other.Number != first.Number || !other.Until.Equal(first.Until) {
		t.Errorf("lead while another has the term: got %+v, %t, %v; want %+v, not held", other, held, err, first)
	}
	renewed := mustLead(t, s, "p", at0.Add(time.Second))
	if renewed.Number != first.Number || !renewed.Until.Equal(at0.Add(time.Second+long)) {
		t.Errorf("renewed term: got %+v, want number %d and a later end", renewed, first.Number)
	}
	late := mustLead(t, s, "p", renewed.Until)
	if late.Number <= first.Number {
		t.Errorf("a term renewed after its end: got number %d, want above %d", late.Number, first.Number)
	}
	if err := s.Release(t.Context(), first.Number); err != nil {
		t.Fatal(err)
	}
	if _, held, err := s.Lead(t.Context(), "q", renewed.Until, late.Until.Add(long)); held || err != nil {
		t.Errorf("after the release of a term before: got held %t, %v; want it not held", held, err)
	}
	if err := s.Release(t.Context(), late.Number); err != nil {
		t.Fatal(err)
	}
	taken := mustLead(t, s, "q", renewed.Until)
	if taken.Number <= late.Number {
		t.Errorf("after a release: got number %d, want above %d", taken.Number, late.Number)
	}
	taken = mustLead(t, s, "p", taken.Until)
	if again := mustLead(t, s, "p", taken.Until.Add(-time.Second)); again.Number != taken.Number {
		t.Errorf("the term of another process after its end: got number %d, want %d", again.Number, taken.Number)
	}
}

// testTermOfAWrongClock has a process whose clock is wrong when it takes the term. Another process, with a right clock,
// must be able to take the term: at once, or when the term has ended by its clock, which is less than an hour later.
func testTermOfAWrongClock(t *testing.T, open openWebhooks) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	s, now := open(t, "a", at(start)), at0
	for _, ahead := range []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year} {
		now = now.Add(2 * time.Minute) // the term before has ended, by a clock a minute behind too
		wrong := mustLead(t, s, "p", now.Add(ahead))
		if ahead == time.Minute {
			now = wrong.Until
		}
		taken := mustLead(t, s, "q", now)
		if taken.Number <= wrong.Number || !taken.Until.Equal(now.Add(10*time.Second)) {
			t.Errorf("a clock %v ahead: got %+v, want a number above %d and the usual end", ahead, taken, wrong.Number)
		}
		if _, held, err := s.Lead(t.Context(), "p", now, now.Add(10*time.Second)); held || err != nil {
			t.Errorf("a clock %v ahead, then right: got held %t, %v; want it not held", ahead, held, err)
		}
	}
}

func testSave(t *testing.T, open openWebhooks) {
	s := open(t, "a", at(start))
	var all []webhook.Endpoint
	for i := range 4 {
		all = append(all, mustPut(t, s, endpoint(fmt.Sprintf("a%d", i), "b1")))
	}
	step := func(e webhook.Endpoint, position int64) webhook.Step {
		p := endpoint(e.ID, "").Progress
		p.Position, p.State, p.Reason = position, webhook.Active, ""
		return webhook.Step{ID: e.ID, Generation: e.Generation, Progress: p}
	}
	save := func(term int64, wantErr error, want []string, steps ...webhook.Step) {
		t.Helper()
		stale, err := s.Save(t.Context(), term, steps)
		slices.Sort(stale)
		if diff := cmp.Diff(want, stale, cmpopts.EquateEmpty()); !errors.Is(err, wantErr) || diff != "" {
			t.Errorf("save in term %d: got %v, want %v; the stale ids differ (-want +got):\n%s", term, err, wantErr, diff)
		}
	}
	first := mustLead(t, s, "p", at0)
	save(first.Number, nil, nil)
	changed := mustPut(t, s, all[1])
	if err := s.Remove(t.Context(), all[2].ID); err != nil {
		t.Fatal(err)
	}
	steps := []webhook.Step{step(all[0], 10), step(all[1], 11), step(all[2], 12), step(all[3], 13)}
	save(first.Number, nil, []string{all[1].ID, all[2].ID}, steps...)
	all[0].Progress, all[0].Saves = steps[0].Progress, 1
	all[3].Progress, all[3].Saves = steps[3].Progress, 1
	for _, e := range []webhook.Endpoint{all[0], changed, all[3]} {
		checkEndpoint(t, s, e)
	}
	if term := mustLead(t, s, "p", at0); term.Changes != first.Changes+2 {
		t.Errorf("changes: got %d, want %d: saved progress is none", term.Changes, first.Changes+2)
	}

	second := mustLead(t, s, "q", first.Until)
	save(first.Number, webhook.ErrTermOver, nil, step(all[0], 20))
	checkEndpoint(t, s, all[0])
	save(second.Number, nil, nil, step(all[0], 7)) // the new progress may be behind the stored one
	all[0].Progress, all[0].Saves = step(all[0], 7).Progress, 2
	checkEndpoint(t, s, all[0])
}

// testTermRace lets several processes take and renew the term at the same time. No two processes may get the same
// term.
func testTermRace(t *testing.T, open openWebhooks) {
	s := open(t, "a", at(start))
	var mu sync.Mutex
	holders := map[int64]string{}
	for round := range 5 {
		now := at0.Add(time.Duration(round) * time.Minute)
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				holder := fmt.Sprintf("p%d", i)
				term, held, err := s.Lead(t.Context(), holder, now, now.Add(10*time.Second))
				if err != nil {
					t.Error(err)
				}
				if !held {
					return
				}
				won.Add(1)
				mu.Lock()
				defer mu.Unlock()
				if other := holders[term.Number]; other != "" {
					t.Errorf("term %d: got %s beside %s, want one holder", term.Number, holder, other)
				}
				holders[term.Number] = holder
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("got %d of 6 processes with the term, want 1", won.Load())
		}
	}
}

// testPutRace changes an endpoint with Put while another goroutine saves its progress. If the store refuses one of the
// two calls as stale, the goroutine of this call reads the endpoint again and repeats the call. No change and no step
// may be lost.
func testPutRace(t *testing.T, open openWebhooks) {
	const changes, steps = 5, 8
	s := open(t, "a", at(start))
	e := endpoint("a1", "b1")
	e.Position, e.Failures = 0, 0
	mustPut(t, s, e)
	term := mustLead(t, s, "p", at0)
	failed := make(chan error, 3)
	put := func(ctx context.Context) error {
		for done := 0; done < changes; {
			now, err := s.Endpoint(ctx, e.ID)
			if err != nil {
				return err
			}
			now.Failures++
			switch err := s.Put(ctx, now); {
			case err == nil:
				done++
			case !errors.Is(err, webhook.ErrStale):
				return err
			}
		}
		return nil
	}
	save := func(ctx context.Context) error {
		for done := 0; done < steps; {
			now, err := s.Endpoint(ctx, e.ID)
			if err != nil {
				return err
			}
			step := webhook.Step{ID: e.ID, Generation: now.Generation, Progress: now.Progress}
			step.Position++
			stale, err := s.Save(ctx, term.Number, []webhook.Step{step})
			if err != nil {
				return err
			}
			if len(stale) == 0 {
				done++
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{put, put, save} {
		wg.Go(func() { failed <- run(t.Context()) })
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	got, err := s.Endpoint(t.Context(), e.ID)
	if err != nil || got.Failures != 2*changes || got.Position != steps || got.Saves != steps ||
		got.Generation != 2*changes+1 {
		t.Errorf("got %d changes, %d steps, %d saves, generation %d, %v; want %d, %d, %d, %d", got.Failures, got.Position,
			got.Saves, got.Generation, err, 2*changes, steps, steps, 2*changes+1)
	}
	if now := mustLead(t, s, "p", at0); now.Changes != term.Changes+2*changes {
		t.Errorf("changes: got %d, want %d", now.Changes, term.Changes+2*changes)
	}
}

func testBrokerBound(t *testing.T, open openWebhooks) { CheckBrokerBound(t, open(t, "a", at(start))) }

// CheckBrokerBound tries to create more endpoints than a broker may have, all at the same time. Exactly the allowed
// number must be stored. All stores must share their data.
func CheckBrokerBound(t *testing.T, stores ...WebhookStore) {
	t.Helper()
	s := stores[0]
	byAdmin := endpoint("admin", "b1")
	byAdmin.ByAdmin = true
	mustPut(t, s, byAdmin)
	putMany(t, stores, "a", 12, 12)
	putMany(t, stores, "b", webhook.MaxOfBroker, webhook.MaxOfBroker-12)
	all, err := s.Endpoints(t.Context(), "b1", "", 2*webhook.MaxOfBroker)
	if err != nil || len(all) != webhook.MaxOfBroker {
		t.Fatalf("got %d endpoints, %v; want %d", len(all), err, webhook.MaxOfBroker)
	}
	again := endpoint(all[0].ID, "b1")
	if err := s.Put(t.Context(), again); !errors.Is(err, webhook.ErrStale) {
		t.Errorf("a new endpoint with the id of another, at the bound: got %v, want ErrStale", err)
	}
	mustPut(t, s, all[0]) // changes an endpoint that exists
	byAdmin.ID = "admin2"
	mustPut(t, s, byAdmin)
	mustPut(t, s, endpoint("other", "b2"))
	for _, e := range all[3:6] {
		if err := s.Remove(t.Context(), e.ID); err != nil {
			t.Fatal(err)
		}
	}
	putMany(t, stores, "c", 10, 3)
}

// putMany creates endpoints of one broker at the same time. The argument `count` is the number of endpoints to
// create. The argument `stored` is the number of endpoints that must be stored; all other creations must get
// ErrBrokerFull.
func putMany(t *testing.T, stores []WebhookStore, prefix string, count, stored int) {
	t.Helper()
	errs := make([]error, count)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = webhook.ErrStale
			for tries := 0; tries < 20 && errors.Is(errs[i], webhook.ErrStale); tries++ {
				errs[i] = stores[i%len(stores)].Put(t.Context(), endpoint(fmt.Sprintf("%s%d", prefix, i), "b1"))
			}
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case !errors.Is(err, webhook.ErrBrokerFull):
			t.Errorf("a creation beside others: got %v, want none or ErrBrokerFull", err)
		}
	}
	if done != stored {
		t.Errorf("%d creations at once: got %d that are stored, want %d", count, done, stored)
	}
}
