package mongostore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestAnImportHasTheWebhooks imports webhooks twice, as after an interruption. The store must have all of them.
// Then it saves the progress of a webhook in the first term. No step may be stale.
func TestAnImportHasTheWebhooks(t *testing.T) {
	uri := mongotest.Start(t).URI(t, "timportwebhooks")
	all := []webhook.Endpoint{
		{ID: "a1", Broker: "b1", URL: "https://x", Generation: 4, Saves: 9, Progress: webhook.Progress{Position: 7}},
		{ID: "a2", Broker: "b2", ByAdmin: true, Generation: 1, Seal: "s"},
	}
	for attempt := range 2 {
		i := expect.Get(OpenImport(t.Context(), uri))(t)
		expect.OK(t, i.PutWebhooks(t.Context(), all[:attempt+1]))
		if attempt == 1 {
			expect.Fails(t, i.Finish(t.Context(), 0, 0, 3, 7), "finish with another number of webhooks")
			expect.OK(t, i.Finish(t.Context(), 0, 0, 2, 7))
		}
		expect.OK(t, i.Close())
	}
	s := openWith(t, uri, Options{})
	got, err := s.Endpoints(t.Context(), "", "", 10)
	if diff := cmp.Diff(all, got); err != nil || diff != "" {
		t.Errorf("got error %v; the webhooks differ (-want +got):\n%s", err, diff)
	}
	term, held, err := s.Lead(t.Context(), "p", time.Now(), time.Now().Add(time.Minute))
	if err != nil || !held {
		t.Fatalf("lead: got held %t, %v; want it held", held, err)
	}
	steps := []webhook.Step{{ID: "a1", Generation: 4, Progress: webhook.Progress{Position: 8}}}
	if stale, err := s.Save(t.Context(), term.Number, steps); err != nil || len(stale) > 0 {
		t.Errorf("save: got stale %v, %v; want none", stale, err)
	}
}

// TestALateSaveOfAFormerTermIsStale lets a save of an old term arrive after a newer term has saved. The late save
// must not change the webhook.
func TestALateSaveOfAFormerTermIsStale(t *testing.T) {
	s := open(t, mongotest.Start(t), "", time.Now)
	expect.OK(t, s.Put(t.Context(), webhook.Endpoint{ID: "a", Broker: "b"}))
	now := time.Now()
	first, held, err1 := s.Lead(t.Context(), "p", now, now.Add(time.Second))
	second, taken, err2 := s.Lead(t.Context(), "q", now.Add(time.Second), now.Add(time.Minute))
	if err := errors.Join(err1, err2); err != nil || !held || !taken {
		t.Fatalf("lead: got held %t and %t, %v; want both", held, taken, err)
	}
	step := func(position int64) []webhook.Step {
		return []webhook.Step{{ID: "a", Generation: 1, Progress: webhook.Progress{Position: position}}}
	}
	if stale, err := s.Save(t.Context(), second.Number, step(20)); err != nil || len(stale) > 0 {
		t.Fatalf("save: got stale %v, %v; want none", stale, err)
	}
	if stale, err := s.db.saveSteps(t.Context(), first.Number, step(10)); err != nil || len(stale) != 1 {
		t.Errorf("a late save: got stale %v, %v; want the webhook", stale, err)
	}
	if got, err := s.Endpoint(t.Context(), "a"); err != nil || got.Position != 20 {
		t.Errorf("got position %d, %v; want 20", got.Position, err)
	}
}

// Promises: hook-bounds
func TestSeveralStoresKeepTheBoundOfABroker(t *testing.T) {
	server := mongotest.Start(t)
	storetest.CheckBrokerBound(t, open(t, server, "hooks", time.Now), open(t, server, "hooks", time.Now),
		open(t, server, "hooks", time.Now))
}

// TestWebhooksWithoutAPlaceCount stores webhooks without the field `place`, as imports do. They too must count
// towards the largest number of webhooks that a broker may have.
func TestWebhooksWithoutAPlaceCount(t *testing.T) {
	s := open(t, mongotest.Start(t), "", time.Now)
	const imported = 5
	for i := range webhook.MaxOfBroker + 1 {
		e := webhook.Endpoint{ID: "a" + strconv.Itoa(i), Broker: "b"}
		var err error
		if i < imported {
			_, err = s.db.hooks.InsertOne(t.Context(), hookOf(e))
		} else {
			err = s.Put(t.Context(), e)
		}
		var want error
		if i == webhook.MaxOfBroker {
			want = webhook.ErrBrokerFull
		}
		expect.Err(t, err, want, "webhook %d", i)
	}
}

func TestTheNumberOfWebhooksIsBounded(t *testing.T) {
	s := open(t, mongotest.Start(t), "", time.Now)
	hooks := make([]any, webhook.MaxEndpoints)
	for i := range hooks {
		hooks[i] = hook{ID: strconv.Itoa(i), ByAdmin: true}
	}
	expect.Get(s.db.hooks.InsertMany(t.Context(), hooks))(t)
	expect.Err(t, s.Put(t.Context(), webhook.Endpoint{ID: "a", Broker: "b"}), webhook.ErrFull,
		"one more than there may be")
	expect.Err(t, s.Put(t.Context(), webhook.Endpoint{ID: "1"}), webhook.ErrStale, "one with the id of another")
	expect.OK(t, s.Remove(t.Context(), "0"))
	expect.Nil(t, s.Put(t.Context(), webhook.Endpoint{ID: "a", Broker: "b"}), "after a removal")
}
