package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

var plainRules = asset.Rules{Types: []string{"bounce"}, Zone: time.UTC}

// both is a meeting point of two callers: each waits for the other.
type both chan struct{}

// meet returns once the other caller has called meet, too. It fails after 10 seconds.
func (b both) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	select {
	case b <- struct{}{}:
		return nil
	case <-b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meetingTokens issues tokens only while the store is being asked for the number of a new asset.
type meetingTokens struct {
	tokens
	both both
}

func (m *meetingTokens) IssueTokens(
	ctx context.Context, r authapi.IssueTokensRequest,
) (authapi.IssueTokensResponse, error) {
	if err := m.both.meet(ctx); err != nil {
		return authapi.IssueTokensResponse{}, err
	}
	return m.tokens.IssueTokens(ctx, r)
}

// meetingStore returns a number for a new asset only while the auth service is being asked for tokens.
type meetingStore struct {
	registry.Store
	both both
}

func (m *meetingStore) NextNumber(ctx context.Context, day string) (int, error) {
	if err := m.both.meet(ctx); err != nil {
		return 0, err
	}
	return m.Store.NextNumber(ctx, day)
}

func TestACreationFetchesNumberAndTokensAtTheSameTime(t *testing.T) {
	_, kept, _, _ := open(t)
	meeting := make(both)
	r := registry.New(&meetingStore{kept, meeting}, &meetingTokens{both: meeting}, plainRules, time.Now)
	created, err := r.Create(t.Context(), owner, registry.Input{Fields: parse(t, validAsset)})
	if err != nil || created.Token != "token" || !strings.Contains(string(created.Body), `"assetID":"UA-AR-DGF-`) {
		t.Errorf("got %s, %v; want an asset with a number and its token", told(created), err)
	}
}

// counting is an auth service that records the sealed token record of each call. It does not record the call that
// follows a handover.
type counting struct {
	handing
	asked []string
}

func (c *counting) VerifyToken(ctx context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	c.asked = append(c.asked, r.Sealed)
	return c.tokens.VerifyToken(ctx, r)
}

func (c *counting) ChangeOwner(ctx context.Context, r authapi.ChangeOwnerRequest) (authapi.ChangeOwnerResponse, error) {
	answer, err := c.handing.ChangeOwner(ctx, r)
	if r.Sealed != answer.Sealed {
		c.asked = append(c.asked, r.Sealed)
	}
	return answer, err
}

// resealing is a store in which another request changes the tokens of the asset before the first Replace.
type resealing struct {
	registry.Store
	t    *testing.T
	done bool
}

func (s *resealing) Replace(ctx context.Context, r registry.Record) (int64, error) {
	if !s.done {
		s.done = true
		others := expect.Get(s.Get(ctx, r.ID, registry.AnySize))(s.t)
		others.Sealed = "other tokens"
		expect.Get(s.Store.Replace(ctx, others))(s.t)
	}
	return s.Store.Replace(ctx, r)
}

// TestATokenIsVerifiedOnceForASealedRecord records the calls to the auth service while other requests change the
// asset or its tokens. Only a change of the tokens may cause a second call.
func TestATokenIsVerifiedOnceForASealedRecord(t *testing.T) {
	by := identity.Identity{Broker: "new", Role: identity.Broker, Levels: "3"}
	for _, c := range []struct {
		name   string
		change func(r *registry.Registry, id string) error
	}{
		{"a change", func(r *registry.Registry, id string) error {
			_, err := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"title":"y"}`)})
			return err
		}},
		{"a change of a part", func(r *registry.Registry, id string) error {
			in := registry.Input{Fields: parse(t, validDecision)}
			_, _, err := r.ChangePart(t.Context(), owner, place(t, id, "decisions", ""), "token", asset.Add, in)
			return err
		}},
		{"a handover", func(r *registry.Registry, id string) error {
			_, err := r.ChangeOwner(t.Context(), by, id, nil, registry.Handover{Transfer: "t", Token: "x"})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, kept, _, id := open(t)
			keys := &counting{}
			kept.times = 15
			expect.OK(t, c.change(registry.New(kept, keys, plainRules, time.Now), id))
			expect.NoDiff(t, cmp.Diff([]string{""}, keys.asked), "after 15 other changes: the verified records differ")
			_, kept, _, id = open(t)
			keys = &counting{}
			r := registry.New(&resealing{Store: kept, t: t}, keys, plainRules, time.Now)
			expect.OK(t, c.change(r, id))
			expect.NoDiff(t, cmp.Diff([]string{"", "other tokens"}, keys.asked),
				"after a change of the tokens: the verified records differ")
		})
	}
}

// TestAConditionHoldsForTheRevisionThatIsReplaced makes each kind of change, with a condition that holds only for
// the first revision. Another request changes the asset before the change is stored. The change must be refused.
func TestAConditionHoldsForTheRevisionThatIsReplaced(t *testing.T) {
	by := identity.Identity{Broker: "new", Role: identity.Broker, Levels: "3"}
	for _, c := range []struct {
		name   string
		change func(r *registry.Registry, id string, guard registry.Guard) error
	}{
		{"a change", func(r *registry.Registry, id string, guard registry.Guard) error {
			_, err := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"title":"y"}`), Guard: guard})
			return err
		}},
		{"a change of a part", func(r *registry.Registry, id string, guard registry.Guard) error {
			in := registry.Input{Fields: parse(t, validDecision), Guard: guard}
			_, _, err := r.ChangePart(t.Context(), owner, place(t, id, "decisions", ""), "token", asset.Add, in)
			return err
		}},
		{"a handover", func(r *registry.Registry, id string, guard registry.Guard) error {
			_, err := r.ChangeOwner(t.Context(), by, id, guard, registry.Handover{Transfer: "t", Token: "x"})
			return err
		}},
		{"a recovery", func(r *registry.Registry, id string, guard registry.Guard) error {
			_, err := r.Recover(t.Context(), admin, id, guard, lost)
			return err
		}},
		{"a removal", func(r *registry.Registry, id string, guard registry.Guard) error {
			return r.Remove(t.Context(), owner, id, "token", guard)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, kept, _, id := open(t)
			before, err := kept.Get(t.Context(), id, registry.AnySize)
			expect.OK(t, err)
			r := registry.New(kept, &anyChange{}, plainRules, time.Now)
			kept.times = 1
			err = c.change(r, id, func(position int64) bool { return position == before.Position })
			expect.ErrorIf(t, fault.KindOf(err) != fault.Precondition, "got %v, want a fault of kind Precondition", err)
			after, err := kept.Get(t.Context(), id, registry.AnySize)
			if err != nil || after.Revision != 2 || after.Sealed != before.Sealed {
				t.Errorf("got revision %d with the tokens %q, %v; want 2, the other request's, with the tokens of before",
					after.Revision, after.Sealed, err)
			}
		})
	}
}

// interfering is a store in which something happens before the first Replace.
type interfering struct {
	registry.Store
	first func()
}

func (s *interfering) Replace(ctx context.Context, r registry.Record) (int64, error) {
	if first := s.first; first != nil {
		s.first = nil
		first()
	}
	return s.Store.Replace(ctx, r)
}

// TestAChangeKeepsAnotherOneThatCameFirst changes an asset and a part of it. Before the change is stored, another
// process stores another title. Both changes must be in the asset.
func TestAChangeKeepsAnotherOneThatCameFirst(t *testing.T) {
	for name, change := range map[string]func(r *registry.Registry, id string) error{
		"an asset": func(r *registry.Registry, id string) error {
			_, err := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"description":"mine"}`)})
			return err
		},
		"a part": func(r *registry.Registry, id string) error {
			decision := parse(t, `{"decisionDate":"2026-11-21","decisionID":"mine"}`)
			_, _, err := r.ChangePart(t.Context(), owner, place(t, id, "decisions", ""), "token", asset.Add,
				registry.Input{Fields: decision})
			return err
		},
	} {
		another, kept, keys, id := open(t)
		r := registry.New(&interfering{kept, func() {
			in := registry.Input{Fields: parse(t, `{"title":"another"}`)}
			if _, err := another.Change(t.Context(), owner, id, "token", in); err != nil {
				t.Error(err)
			}
		}}, keys, plainRules, time.Now)
		expect.Must(t, change(r, id), "%s", name)
		stored, err := kept.Get(t.Context(), id, registry.AnySize)
		body := string(stored.Body)
		if err != nil || !strings.Contains(body, `"title":"another"`) || !strings.Contains(body, "mine") {
			t.Errorf("%s: got %s, %v; want both changes", name, body, err)
		}
	}
}

// anyChange is an auth service that hands assets over and gives them new tokens.
type anyChange struct{ handing }

func (*anyChange) RecoverTokens(
	context.Context, authapi.RecoverTokensRequest,
) (authapi.RecoverTokensResponse, error) {
	issued := authapi.IssueTokensResponse{Token: "new", Transfer: "new", Sealed: "sealed anew"}
	return authapi.RecoverTokensResponse{IssueTokensResponse: issued, Owner: "broker"}, nil
}

// handed is an auth service that accepts a token only with the sealed record that the asset had first.
type handed struct{ tokens }

func (*handed) VerifyToken(_ context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	return authapi.VerifyTokenResponse{Valid: r.Sealed == ""}, nil
}

func TestAHandoverDuringAChangeEndsTheToken(t *testing.T) {
	_, kept, _, id := open(t)
	r := registry.New(&resealing{Store: kept, t: t}, &handed{}, plainRules, time.Now)
	_, err := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"title":"y"}`)})
	if fault.KindOf(err) != fault.Forbidden {
		t.Errorf("the former owner's change: got %v, want kind Forbidden", err)
	}
}

// slow is an auth service that announces each call on the channel in the field `asked`. A call returns after it has
// received from the channel in the field `answer`.
type slow struct {
	seeded
	asked, answer chan struct{}
}

func (s slow) wait() {
	s.asked <- struct{}{}
	<-s.answer
}

func (s slow) VerifyToken(ctx context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	s.wait()
	return s.seeded.VerifyToken(ctx, r)
}

func (s slow) IssueTokens(ctx context.Context, r authapi.IssueTokensRequest) (authapi.IssueTokensResponse, error) {
	s.wait()
	return s.seeded.IssueTokens(ctx, r)
}

func (s slow) ChangeOwner(_ context.Context, r authapi.ChangeOwnerRequest) (authapi.ChangeOwnerResponse, error) {
	if r.Sealed != "new" { // the asset has not been handed over yet
		s.wait()
	}
	return authapi.ChangeOwnerResponse{Owner: "new", Sealed: "new"}, nil
}

// TestNoChangeWaitsForAVerification lets the concierge change an asset while another request for the asset waits
// for the auth service. Both requests need the turn of the asset. The concierge's change must succeed before the
// auth service answers.
func TestNoChangeWaitsForAVerification(t *testing.T) {
	in := registry.Input{Fields: parse(t, validAsset), Seed: registry.Seed("seed")}
	for _, c := range []struct {
		name string
		do   func(r *registry.Registry, id string) error
	}{
		{"verification of an owner token", func(r *registry.Registry, id string) error {
			_, err := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"title":"y"}`)})
			return err
		}},
		{"verification of a transfer token", func(r *registry.Registry, id string) error {
			_, err := r.ChangeOwner(t.Context(), owner, id, nil, registry.Handover{Transfer: "t", Token: "x"})
			return err
		}},
		{"tokens for a repeated creation", func(r *registry.Registry, _ string) error {
			_, err := r.Create(t.Context(), owner, in)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fast, _, store, now := openSeeded(t)
			created, err := fast.Create(t.Context(), owner, in)
			expect.OK(t, err)
			keys := slow{asked: make(chan struct{}), answer: make(chan struct{})}
			r := registry.New(store, keys, plainRules, now.read)
			done := make(chan error, 1)
			go func() { done <- c.do(r, created.ID) }()
			<-keys.asked
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			process := parse(t, `{"type":"lot","relatedProcessID":"`+strings.Repeat("d", 32)+`"}`)
			at := place(t, created.ID, "related_processes", "")
			_, _, err = r.ChangePart(ctx, concierge, at, "", asset.Add, registry.Input{Fields: process})
			expect.Nil(t, err, "the concierge's change meanwhile")
			close(keys.answer)
			expect.Try(t, <-done)
		})
	}
}
