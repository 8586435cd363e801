package registry_test

import (
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

func TestARemovalIsRefused(t *testing.T) {
	r, _, keys, id := open(t)
	published := expect.Get(r.Create(t.Context(), owner, registry.Input{Fields: parse(t, validAsset)}))(t)
	expect.Get(r.Change(t.Context(), owner, published.ID, "token", registry.Input{
		Fields: parse(t, `{"status":"pending"}`),
	}))(t)
	stale := func(int64) bool { return false }
	testOnly, stranger := owner, owner
	testOnly.Levels, stranger.Broker = "3t", "stranger"
	for _, c := range []struct {
		name      string
		by        identity.Identity
		id, token string
		guard     registry.Guard
		want      fault.Kind
		says      string
	}{
		{"nobody", identity.Identity{}, id, "token", nil, fault.Forbidden, "API key"},
		{"no token", owner, id, "", nil, fault.Forbidden, "owner token is missing"},
		{"a wrong token", owner, id, "x", nil, fault.Forbidden, "owner token is wrong"},
		{"another broker", stranger, id, "token", nil, fault.Forbidden, "another broker"},
		{"the administrator", admin, id, "", nil, fault.Forbidden, "only the owner"},
		{"the concierge", concierge, id, "token", nil, fault.Forbidden, "only the owner"},
		{"a test-only key", testOnly, id, "token", nil, fault.Forbidden, "test-only"},
		{"a stale revision", owner, id, "token", stale, fault.Precondition, ""},
		{"a published asset", owner, published.ID, "token", nil, fault.Forbidden, "(pending)"},
		{"a published asset at a stale revision", owner, published.ID, "token", stale, fault.Forbidden, "(pending)"},
		{"no asset", owner, strings.Repeat("0", 32), "token", nil, fault.NotFound, ""},
	} {
		err := r.Remove(t.Context(), c.by, c.id, c.token, c.guard)
		if fault.KindOf(err) != c.want || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want a fault of kind %v with %q", c.name, err, c.want, c.says)
		}
	}
	keys.down = true
	expect.Fault(t, r.Remove(t.Context(), owner, id, "token", nil), fault.Unavailable, "without the auth service")
	if _, err := r.Read(t.Context(), id); err != nil {
		t.Errorf("the draft: got %v, want it there", err)
	}
}

// TestARemovedDraftIsGone removes a draft while other requests change it, and then asks for the draft in every
// way. No answer may have it.
func TestARemovedDraftIsGone(t *testing.T) {
	r, store, _, id := open(t)
	store.times = 2
	expect.OK(t, r.Remove(t.Context(), owner, id, "token", nil))
	expect.ErrOf(t, registry.ErrRemoved, "the store")(store.Get(t.Context(), id, registry.AnySize))
	_, read := r.Read(t.Context(), id)
	_, revisions := r.Revisions(t.Context(), admin, id, "", 0, 10)
	_, erased := r.Erase(t.Context(), admin, id, 1)
	_, changed := r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, `{"status":"pending"}`)})
	again := r.Remove(t.Context(), owner, id, "token", nil)
	for doing, err := range map[string]error{
		"read": read, "revisions": revisions, "erase": erased, "change": changed, "remove again": again,
	} {
		expect.ErrorIf(t, fault.KindOf(err) != fault.NotFound, "%s: got %v, want a fault of kind NotFound", doing, err)
	}
	page, err := r.Own(t.Context(), owner, registry.Query{Limit: 10, Mode: registry.All})
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("own assets: got %v, %v; want none", page.Entries, err)
	}
	changes, err := store.Changes(t.Context(), registry.ChangesQuery{Limit: 10, Bytes: registry.AnySize})
	if err != nil || len(changes.Changes) != 4 {
		t.Errorf("the record: got %d changes, %v; want the creation, 2 changes and the removal", len(changes.Changes), err)
	}
}

// TestAnInterruptedRemovalCanBeRepeated lets the write return an error before or after it is done, and repeats
// the removal. In the end the draft must be gone.
func TestAnInterruptedRemovalCanBeRepeated(t *testing.T) {
	for _, c := range []struct {
		name  string
		store failing
		want  fault.Kind // kind of the error of the repeated removal; Internal means that it must succeed
	}{
		{"a failure before the write", failing{before: true}, fault.Internal},
		{"a failure after the write", failing{after: true}, fault.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, kept, keys, id := open(t)
			c.store.Store = kept.Store
			r := registry.New(&c.store, keys, plainRules, time.Now)
			if err := r.Remove(t.Context(), owner, id, "token", nil); fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("got %v, want kind Unavailable", err)
			}
			err := r.Remove(t.Context(), owner, id, "token", nil)
			if (err != nil) != (c.want == fault.NotFound) || err != nil && fault.KindOf(err) != c.want {
				t.Errorf("the repeat: got %v, want kind %v", err, c.want)
			}
			expect.FaultOf(t, fault.NotFound, "the draft")(r.Read(t.Context(), id))
		})
	}
}

// TestARemovedDraftIsNotCreatedByARepeat removes a draft that was created under a seed. Then it repeats the creation:
// under the same seed in two processes, under a seed of another secret, with another title, and after a day. Only
// after a day may the request create an asset.
func TestARemovedDraftIsNotCreatedByARepeat(t *testing.T) {
	one, other, _, now := openSeeded(t)
	in := registry.Input{Fields: parse(t, validAsset), Seed: registry.Seed("seed")}
	created := expect.Get(one.Create(t.Context(), owner, in))(t)
	expect.OK(t, one.Remove(t.Context(), owner, created.ID, "token", nil))
	for name, r := range map[string]*registry.Registry{"the same process": one, "another process": other} {
		if got, err := r.Create(t.Context(), owner, in); fault.KindOf(err) != fault.Gone {
			t.Errorf("%s: got %v, %v; want a fault of kind Gone", name, got.ID, err)
		}
	}
	rotated := in
	rotated.Seed, rotated.Others = registry.Seed("another seed"), []registry.Seed{in.Seed}
	if got, err := one.Create(t.Context(), owner, rotated); fault.KindOf(err) != fault.Gone {
		t.Errorf("another secret: got %v, %v; want a fault of kind Gone", got.ID, err)
	}
	different := in
	different.Fields = parse(t, strings.Replace(validAsset, `"title":"x"`, `"title":"y"`, 1))
	if got, err := one.Create(t.Context(), owner, different); fault.KindOf(err) != fault.Invalid {
		t.Errorf("another request: got %v, %v; want a fault of kind Invalid", got.ID, err)
	}
	now.pass(25 * time.Hour)
	if got, err := one.Create(t.Context(), owner, in); err != nil || got.ID == created.ID {
		t.Errorf("after a day: got %v, %v; want another asset", got.ID, err)
	}
}
