package registry_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// referring returns the input of a creation with a reference.
func referring(t *testing.T, title, reference string, seed registry.Seed) registry.Input {
	t.Helper()
	fields := parse(t, strings.Replace(validAsset, `"title":"x"`, `"title":"`+title+`"`, 1))
	return registry.Input{Fields: fields, Reference: reference, Seed: seed}
}

// TestAReferenceMakesOneAsset creates assets under references of two brokers, and repeats these creations. Each
// repeat must get the asset that exists.
func TestAReferenceMakesOneAsset(t *testing.T) {
	one, other, _, now := openSeeded(t)
	create := func(r *registry.Registry, by identity.Identity, in registry.Input) registry.Created {
		t.Helper()
		return expect.Get(r.Create(t.Context(), by, in))(t)
	}
	first := create(one, owner, referring(t, "x", "r", nil))
	if first.Token == "" || first.Transfer == "" {
		t.Errorf("got the tokens %q and %q, want two", first.Token, first.Transfer)
	}
	now.pass(48 * time.Hour)
	again := create(other, owner, referring(t, "x", "r", registry.Seed("seed")))
	if again.ID != first.ID || again.Token != "" || again.Transfer != "" {
		t.Errorf("a repeat: got asset %s with the token %q, want %s without", again.ID, again.Token, first.ID)
	}
	_, err := one.Create(t.Context(), owner, referring(t, "y", "r", nil))
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), first.ID) {
		t.Errorf("other fields: got %v, want a conflict with %s", err, first.ID)
	}
	stranger := owner
	stranger.Broker = "stranger"
	if got := create(one, stranger, referring(t, "y", "r", nil)); got.ID == first.ID {
		t.Error("another broker: got the same asset, want another")
	}
	if got := create(one, owner, referring(t, "x", "r2", nil)); got.ID == first.ID {
		t.Error("another reference: got the same asset, want another")
	}
}

// TestARepeatUnderTheSameKeyGetsTheTokens repeats a creation that has a reference and a seed. A repeat
// within a day must get the tokens. A later repeat must get the asset without tokens.
func TestARepeatUnderTheSameKeyGetsTheTokens(t *testing.T) {
	one, other, _, now := openSeeded(t)
	in := referring(t, "x", "r", registry.Seed("seed"))
	first := expect.Get(one.Create(t.Context(), owner, in))(t)
	rotated := referring(t, "x", "r", registry.Seed("another"))
	rotated.Others = []registry.Seed{in.Seed}
	for name, in := range map[string]registry.Input{"the same seed": in, "a rotated secret": rotated} {
		got, err := other.Create(t.Context(), owner, in)
		if err != nil || got.ID != first.ID || got.Token != first.Token || got.Transfer != first.Transfer {
			t.Errorf("%s: got %s with %q, %v; want %s with %q", name, got.ID, got.Token, err, first.ID, first.Token)
		}
	}
	now.pass(25 * time.Hour)
	if got, err := one.Create(t.Context(), owner, in); err != nil || got.ID != first.ID || got.Token != "" {
		t.Errorf("after a day: got %s with %q, %v; want %s without tokens", got.ID, got.Token, err, first.ID)
	}
}

// TestAKeyBelongsToItsReference sends one seed with a reference, with another one and without. Each of these is a request
// of its own, with its own repeats, also after the first asset was removed.
// Promises: key-of-reference
func TestAKeyBelongsToItsReference(t *testing.T) {
	one, other, _, _ := openSeeded(t)
	requests := []registry.Input{
		referring(t, "x", "r", registry.Seed("seed")), referring(t, "x", "r2", registry.Seed("seed")),
		referring(t, "x", "", registry.Seed("seed")),
	}
	var made []registry.Created
	for i, in := range requests {
		got := expect.Get(one.Create(t.Context(), owner, in))(t)
		for j, before := range made {
			if got.ID == before.ID || got.Token == before.Token {
				t.Errorf("request %d: got asset %s with %q, want another than request %d", i, got.ID, got.Token, j)
			}
		}
		made = append(made, got)
	}
	expect.OK(t, one.Remove(t.Context(), owner, made[0].ID, "token", nil))
	for i, in := range requests {
		got, err := other.Create(t.Context(), owner, in)
		if i == 0 {
			if fault.KindOf(err) != fault.Gone || !strings.Contains(err.Error(), registry.ReferenceHeader) {
				t.Errorf("the removed asset: got %v, want it gone at %s", err, registry.ReferenceHeader)
			}
			continue
		}
		if err != nil || got.ID != made[i].ID || got.Token != made[i].Token {
			t.Errorf("a repeat of request %d: got %s with %q, %v; want %s with %q",
				i, got.ID, got.Token, err, made[i].ID, made[i].Token)
		}
	}
	_, err := one.Create(t.Context(), owner, referring(t, "y", "", registry.Seed("seed")))
	expect.ErrorIf(t, fault.KindOf(err) != fault.Invalid, "other fields: got %v, want them refused", err)
}

// TestAReferenceOutlivesItsAsset removes one draft, hands another one over, and then uses their references
// again. The reference of a broker must never stand for another asset.
func TestAReferenceOutlivesItsAsset(t *testing.T) {
	_, store, keys, _ := open(t)
	r := registry.New(store, keys, plainRules, time.Now)
	gone := expect.Get(r.Create(t.Context(), owner, referring(t, "x", "gone", nil)))(t)
	expect.OK(t, r.Remove(t.Context(), owner, gone.ID, "token", nil))
	left, err := store.Get(t.Context(), gone.ID, registry.AnySize)
	if !errors.Is(err, registry.ErrRemoved) || !strings.Contains(left.Origin, "gone") ||
		strings.Contains(left.Origin, "fields") || len(left.Body) > 0 {
		t.Errorf("a removed draft: got %q with the origin %s, %v; want its reference alone, without a hash of its fields",
			left.Body, left.Origin, err)
	}
	for _, title := range []string{"x", "y"} {
		_, err := r.Create(t.Context(), owner, referring(t, title, "gone", nil))
		if fault.KindOf(err) != fault.Gone || !strings.Contains(err.Error(), gone.ID) {
			t.Errorf("a removed draft: got %v, want a fault of kind Gone with %s", err, gone.ID)
		}
	}
	r = registry.New(store, &handing{}, plainRules, time.Now)
	given := expect.Get(r.Create(t.Context(), owner, referring(t, "x", "given", nil)))(t)
	reference := func(by identity.Identity) (found string) {
		t.Helper()
		page := expect.Get(r.Own(t.Context(), by, registry.Query{Limit: 10, Mode: registry.All,
			Bodies: registry.AnySize}))(t)
		for _, e := range page.Entries {
			if e.ID == given.ID {
				found = "found " + e.Reference
			}
		}
		return found
	}
	expect.Equal(t, reference(owner), "found given", "own assets")
	buyer := identity.Identity{Broker: "new", Role: identity.Broker, Levels: "3"}
	expect.Get(r.ChangeOwner(t.Context(), buyer, given.ID, nil, registry.Handover{Transfer: "t", Token: "x"}))(t)
	if got := reference(buyer); got != "found " {
		t.Errorf("the new owner: got %q, want the asset without the reference of another broker", got)
	}
	if got, err := r.Create(t.Context(), owner, referring(t, "x", "given", nil)); err != nil || got.ID != given.ID {
		t.Errorf("a repeat by the former owner: got %s, %v; want %s", got.ID, err, given.ID)
	}
	if got, err := r.Create(t.Context(), buyer, referring(t, "x", "given", nil)); err != nil || got.ID == given.ID {
		t.Errorf("the new owner's creation: got %s, %v; want another asset", got.ID, err)
	}
}

// dying is a store whose next Create fails before it writes, fails after it has written, or returns registry.ErrVoid.
type dying struct {
	registry.Store
	before, after, void bool
}

func (s *dying) Create(ctx context.Context, r registry.Record) (int64, error) {
	was := *s
	s.before, s.after, s.void = false, false, false
	switch {
	case was.before:
		return 0, errors.New("killed")
	case was.void:
		return 0, registry.ErrVoid
	}
	position, err := s.Store.Create(ctx, r)
	if was.after {
		err = errors.New("killed")
	}
	return position, err
}

// TestAnInterruptedCreationUnderAReferenceMakesOneAsset interrupts a creation at each of its steps, and repeats
// it. In the end there must be one asset.
func TestAnInterruptedCreationUnderAReferenceMakesOneAsset(t *testing.T) {
	for _, c := range []struct {
		name   string
		store  dying
		kind   fault.Kind // kind of the fault of the first attempt; Internal: the attempt succeeds
		tokens bool       // the repeat returns tokens
	}{
		{"before the asset is written", dying{before: true}, fault.Unavailable, true},
		{"after the asset is written", dying{after: true}, fault.Unavailable, false},
		{"the id is void", dying{void: true}, fault.Internal, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, kept, keys, _ := open(t)
			c.store.Store = kept.Store
			r := registry.New(&c.store, keys, plainRules, time.Now)
			if _, err := r.Create(t.Context(), owner, referring(t, "x", "r", nil)); fault.KindOf(err) != c.kind {
				t.Fatalf("got %v, want kind %v", err, c.kind)
			}
			got, err := r.Create(t.Context(), owner, referring(t, "x", "r", nil))
			if err != nil || (got.Token != "") != c.tokens {
				t.Errorf("the repeat: got the token %q, %v; want one: %t", got.Token, err, c.tokens)
			}
			page, err := r.Own(t.Context(), owner, registry.Query{Limit: 10, Mode: registry.All})
			if err != nil || len(page.Entries) != 2 { // the function `open` has created one of them
				t.Errorf("own assets: got %d, %v; want 2", len(page.Entries), err)
			}
		})
	}
}

// TestAFaultyCreationLeavesItsReferenceFree sends faulty fields first, and then valid fields with the same reference.
// The second request must create an asset. A repeat of the second request must get this asset, even under new settings
// that would refuse its fields.
func TestAFaultyCreationLeavesItsReferenceFree(t *testing.T) {
	r, store, keys, _ := open(t)
	faulty := registry.Input{Fields: parse(t, `{"title":1}`), Reference: "r"}
	expect.FaultOf(t, fault.Invalid, "")(r.Create(t.Context(), owner, faulty))
	got, err := r.Create(t.Context(), owner, referring(t, "x", "r", nil))
	if err != nil || got.Token == "" {
		t.Errorf("got the token %q, %v; want a new asset", got.Token, err)
	}
	strict := registry.New(store, keys, asset.Rules{Types: []string{"other"}, Zone: time.UTC}, time.Now)
	again, err := strict.Create(t.Context(), owner, referring(t, "x", "r", nil))
	if err != nil || again.ID != got.ID {
		t.Errorf("under other settings: got %s, %v; want %s", again.ID, err, got.ID)
	}
}

// TestManyCreationsUnderAReferenceMakeOneAsset creates assets under one reference in two processes at the same
// time. Only one asset must be created.
func TestManyCreationsUnderAReferenceMakeOneAsset(t *testing.T) {
	one, other, _, _ := openSeeded(t)
	got := make([]registry.Created, 8)
	var racing sync.WaitGroup
	for i := range got {
		racing.Go(func() {
			r := one
			if i%2 == 1 {
				r = other
			}
			var err error
			if got[i], err = r.Create(t.Context(), owner, referring(t, "x", "r", nil)); err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	tokens := 0
	for _, c := range got {
		if c.ID != got[0].ID {
			t.Errorf("got the assets %s and %s, want one", c.ID, got[0].ID)
		}
		if c.Token != "" {
			tokens++
		}
	}
	expect.Equal(t, tokens, 1, "tokens in, answers")
}
