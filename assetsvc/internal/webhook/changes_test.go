package webhook_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestChangesAreStoredOnce makes the same change twice. The second time, nothing is stored.
func TestChangesAreStoredOnce(t *testing.T) {
	b := newBench(t)
	e := b.mustCreate(t, b1, "state", "disabled")
	if e.State != webhook.Disabled || e.Reason != webhook.Paused {
		t.Errorf("got %s, %q; want it created paused", e.State, e.Reason)
	}
	const generation = 2 // generation 1 is the creation
	for range 2 {
		got, err := b.Change(t.Context(), b1, e.ID, object("url", address+"2"))
		if err != nil || got.URL != address+"2" || got.State != webhook.Disabled || got.Reason != webhook.Paused {
			t.Errorf("got %s, %s, %q, %v; want the new address of a webhook that stays paused", got.URL, got.State,
				got.Reason, err)
		}
		stored, err := b.store.Endpoint(t.Context(), e.ID)
		if err != nil || stored.URL != address+"2" || stored.Generation != generation {
			t.Errorf("stored: got %s and generation %d, %v; want the new address and %d", stored.URL, stored.Generation, err,
				generation)
		}
	}
}

// TestAnAdministratorStopsNothingUnasked lets an administrator resume a webhook that is active. It must stay
// active.
func TestAnAdministratorStopsNothingUnasked(t *testing.T) {
	b := newBench(t)
	e := b.mustCreate(t, b1)
	b.mustProgress(t, e.ID, webhook.Progress{Position: 7, State: webhook.Active, Verified: true})
	got, err := b.Change(t.Context(), admin, e.ID, object("state", "active"))
	if err != nil || got.State != webhook.Active {
		t.Errorf("got %s, %q, %v; want it active", got.State, got.Reason, err)
	}
}

func TestAReplayWithoutAnOffsetGoesOnAtThePosition(t *testing.T) {
	b := newBench(t)
	e := b.mustCreate(t, b1)
	failed := webhook.Progress{Position: 7, State: webhook.Disabled, Reason: webhook.Failing, Verified: true}
	b.mustProgress(t, e.ID, failed)
	got, err := b.Replay(t.Context(), b1, e.ID, nil)
	if err != nil || got.Position != 7 || got.State != webhook.Active {
		t.Errorf("got position %d, %s, %v; want 7, and active", got.Position, got.State, err)
	}
}

// asked is a feed that counts the calls of Next. Next returns the error in the field `err`. Horizon returns the
// error in the field `lost`.
type asked struct {
	feed
	times     int
	err, lost error
}

func (a *asked) Next(ctx context.Context, mode string, after int64) (int64, error) {
	a.times++
	next, err := a.feed.Next(ctx, mode, after)
	return next, errors.Join(err, a.err)
}

func (a *asked) Horizon(ctx context.Context) (int64, error) {
	horizon, err := a.feed.Horizon(ctx)
	return horizon, errors.Join(err, a.lost)
}

// TestWebhooksAtOnePlaceShareAQuestion lists three webhooks. Two of them have the same position and mode, so one
// read of the feed must be enough for both. Then the feed fails, and the requests must return its error.
func TestWebhooksAtOnePlaceShareAQuestion(t *testing.T) {
	b := newBench(t)
	changes := &asked{feed: feed{1, start.UnixMicro()}}
	s := webhook.NewService(webhook.ServiceConfig{Store: b.store, Feed: changes, Seals: newSeals(t, firstSecret),
		CheckURL: func(string) error { return nil }, Now: func() time.Time { return start }})
	first := b.mustCreate(t, b1)
	b.mustCreate(t, b1)
	b.mustCreate(t, b1, "mode", "test")
	if _, err := s.List(t.Context(), b1, "", "", 10); err != nil || changes.times != 2 {
		t.Errorf("got %d questions, %v; want 2", changes.times, err)
	}
	changes.err = errors.New("the feed is down")
	for what, do := range map[string]func() error{
		"list": func() error { _, err := s.List(t.Context(), b1, "", "", 10); return err },
		"get":  func() error { _, err := s.Get(t.Context(), b1, first.ID); return err },
	} {
		expect.Err(t, do(), changes.err, "%s", what)
	}
}

// TestAReplayThatCannotBeginChangesNothing replays a webhook while the horizon of the feed cannot be read. The
// position of the webhook must stay the same.
func TestAReplayThatCannotBeginChangesNothing(t *testing.T) {
	b := newBench(t)
	changes := &asked{feed: feed{1, start.UnixMicro()}, lost: errors.New("the feed is down")}
	s := webhook.NewService(webhook.ServiceConfig{Store: b.store, Feed: changes, Seals: newSeals(t, firstSecret),
		CheckURL: func(string) error { return nil }, Now: func() time.Time { return start }})
	e := b.mustCreate(t, b1)
	expect.ErrOf(t, changes.lost, "")(s.Replay(t.Context(), b1, e.ID, object("offset", "2026-01-01")))
	if got, err := b.store.Endpoint(t.Context(), e.ID); err != nil || got.Position != e.Position {
		t.Errorf("got position %d, %v; want %d", got.Position, err, e.Position)
	}
}

// down is a store that answers only some reads, and then fails.
type down struct {
	webhook.Store
	reads int // number of calls of Endpoint that succeed before calls fail
	err   error
}

func (d *down) Endpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	if d.reads--; d.reads < 0 {
		return webhook.Endpoint{}, d.err
	}
	return d.Store.Endpoint(ctx, id)
}

func (d *down) Endpoints(context.Context, string, string, int) ([]webhook.Endpoint, error) {
	return nil, d.err
}

func (d *down) Put(context.Context, webhook.Endpoint) error { return d.err }

func (d *down) Remove(context.Context, string) error { return d.err }

// TestWithoutTheStoreARequestIsToBeRepeated sends requests while the store is down, while only its writes fail, and
// while another process always changes or removes the webhook first. If the store fails, the client must be asked to
// repeat the request. Each case has the expected kinds of faults.
func TestWithoutTheStoreARequestIsToBeRepeated(t *testing.T) {
	b := newBench(t)
	e := b.mustCreate(t, b1)
	for _, c := range []struct {
		name  string
		store *down
		want  map[string]fault.Kind
	}{
		{"down", &down{err: errors.New("the store is down")}, map[string]fault.Kind{
			"list": fault.Unavailable, "get": fault.Unavailable, "change": fault.Unavailable, "remove": fault.Unavailable,
		}},
		{"down for writes", &down{err: errors.New("the disk is full"), reads: 100}, map[string]fault.Kind{
			"get": fine, "change": fault.Unavailable, "remove": fault.Unavailable,
		}},
		{"changed all the time", &down{err: webhook.ErrStale, reads: 100}, map[string]fault.Kind{"change": fault.Conflict}},
		{"removed meanwhile", &down{err: webhook.ErrNotFound, reads: 100}, map[string]fault.Kind{"remove": fine}},
	} {
		c.store.Store = b.store
		s := webhook.NewService(webhook.ServiceConfig{Store: c.store, Feed: feed{1}, Seals: newSeals(t, firstSecret),
			CheckURL: func(string) error { return nil }, Now: func() time.Time { return start }})
		for what, do := range map[string]func() error{
			"list":   func() error { _, err := s.List(t.Context(), b1, "", "", 10); return err },
			"get":    func() error { _, err := s.Get(t.Context(), b1, e.ID); return err },
			"change": func() error { _, err := s.Change(t.Context(), b1, e.ID, object("state", "disabled")); return err },
			"remove": func() error { return s.Remove(t.Context(), b1, e.ID) },
		} {
			want, asks := c.want[what]
			if err := do(); asks && kindOf(err) != want {
				t.Errorf("%s, %s: got %v, want kind %d", c.name, what, err, want)
			}
		}
	}
}

func TestAnotherRegistrysWebhookHasNoPublicKey(t *testing.T) {
	b := newBench(t)
	seal := mustSeal(t, newSeals(t, secondSecret))
	made := webhook.Endpoint{ID: "w", Broker: "b1", URL: address, Version: "2.5", Seal: seal}
	expect.OK(t, b.store.Put(t.Context(), made))
	if got, err := b.Get(t.Context(), b1, "w"); err != nil || got.PublicKey != "" {
		t.Errorf("got the public key %q, %v; want none", got.PublicKey, err)
	}
}

func TestATestOnlyKeyChangesWebhooksOfTests(t *testing.T) {
	b := newBench(t)
	e := b.mustCreate(t, b1t, "mode", "test")
	got, err := b.Change(t.Context(), b1t, e.ID, object("state", "disabled"))
	if err != nil || got.State != webhook.Disabled {
		t.Errorf("got %s, %v; want it disabled", got.State, err)
	}
}
