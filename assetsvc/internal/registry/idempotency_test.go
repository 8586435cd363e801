package registry_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// seeded is an auth service whose tokens depend on the seed. It accepts only "token" as owner token.
type seeded struct{ registry.Tokens }

func (seeded) IssueTokens(_ context.Context, r authapi.IssueTokensRequest) (authapi.IssueTokensResponse, error) {
	return authapi.IssueTokensResponse{
		Token: authapi.Hash(r.AssetID + r.Seed), Transfer: authapi.Hash(r.Seed + r.AssetID), Sealed: r.AssetID,
	}, nil
}

func (s seeded) VerifyToken(_ context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	return authapi.VerifyTokenResponse{Valid: r.TokenHash == authapi.Hash("token")}, nil
}

// voids is a store whose first ids are void: Create returns ErrVoid for them.
type voids struct {
	registry.Store
	mu   sync.Mutex
	left int
	void map[string]bool
}

func (s *voids) Create(ctx context.Context, r registry.Record) (int64, error) {
	s.mu.Lock()
	if !s.void[r.ID] && s.left > 0 {
		s.left--
		s.void[r.ID] = true
	}
	void := s.void[r.ID]
	s.mu.Unlock()
	if void {
		return 0, registry.ErrVoid
	}
	return s.Store.Create(ctx, r)
}

// clock is a clock that stands still until the test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openSeeded returns two registries on one store, as if each ran in its own process.
func openSeeded(t *testing.T) (one, other *registry.Registry, store *voids, now *clock) {
	t.Helper()
	now = &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	kept := expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "assets.db"), boltstore.Options{Now: now.read}))(t)
	t.Cleanup(func() { kept.Close() })
	store = &voids{Store: kept, void: map[string]bool{}}
	return registry.New(store, seeded{}, plainRules, now.read), registry.New(store, seeded{}, plainRules, now.read), store, now
}

// stricter returns a registry on the store with other settings, under which it would refuse every creation.
func stricter(store *voids, now *clock) *registry.Registry {
	rules := asset.Rules{Types: []string{"other"}, Zone: time.FixedZone("", -11*60*60)}
	return registry.New(store, seeded{}, rules, now.read)
}

// told returns the whole answer to a creation as one text.
func told(c registry.Created) string {
	return fmt.Sprintf("%s at %d, %s, %s: %s", c.ID, c.Position, c.Token, c.Transfer, c.Body)
}

// TestARepeatIsAnsweredAsBefore repeats a creation after different events. Each answer must be the same as the
// first (docs/contract.md, "Idempotency").
// Promises: idempotency-answer
func TestARepeatIsAnsweredAsBefore(t *testing.T) {
	change := func(t *testing.T, r *registry.Registry, id, text string) {
		t.Helper()
		expect.Get(r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, text)}))(t)
	}
	for _, c := range []struct {
		name      string
		meanwhile func(t *testing.T, r *registry.Registry, now *clock, id string)
	}{
		{"nothing happens", func(*testing.T, *registry.Registry, *clock, string) {}},
		{"a change", func(t *testing.T, r *registry.Registry, _ *clock, id string) {
			change(t, r, id, `{"title":"y","items":[]}`)
		}},
		{"more changes than the log keeps", func(t *testing.T, r *registry.Registry, now *clock, id string) {
			for i := range registry.MaxRevisions + 5 {
				change(t, r, id, fmt.Sprintf(`{"title":"%d"}`, i))
			}
		}},
		{"a publication almost a day later", func(t *testing.T, r *registry.Registry, now *clock, id string) {
			now.pass(24*time.Hour - time.Microsecond)
			change(t, r, id, `{"status":"pending"}`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, other, store, now := openSeeded(t)
			ignored := ""
			in := registry.Input{Fields: parse(t, validAsset).With("owner", "other"), Seed: registry.Seed("seed"),
				Ignored: func(names []string) { ignored = strings.Join(names, " ") }}
			first, err := one.Create(t.Context(), owner, in)
			if err != nil || ignored != "owner" {
				t.Fatalf("got the ignored fields %q, %v, want owner", ignored, err)
			}
			c.meanwhile(t, one, now, first.ID)
			lost := identity.Identity{Broker: owner.Broker, Role: identity.Broker} // the key has lost its level
			for _, by := range []identity.Identity{owner, lost} {
				for _, r := range []*registry.Registry{other, stricter(store, now)} {
					ignored = ""
					if again, err := r.Create(t.Context(), by, in); err != nil || told(again) != told(first) {
						t.Errorf("got  %s, %v\nwant %s", told(again), err, told(first))
					}
					expect.Equal(t, ignored, "owner", "the ignored fields")
				}
			}
		})
	}
}

// anew is validAsset in other words: with other orders of members, other texts of numbers, and null for fields that are
// absent.
const anew = `{"title":"x","sandboxParameters":null,"assetCustodian":{"contactPoint":{"telephone":"1","name":"x","faxNumber":null},
	"address":{"countryName":"x"},"identifier":{"id":10e-1,"scheme":"UA-EDR"},"name":"x"},"description":"x","documents":null,
	"items":[{"registrationDetails":{},"address":{"countryName":"x"},"quantity":1.00,"unit":{"code":"x"},
	"classification":{"description":"x","id":"06111000-3"},"description":"x"}],"assetType":"bounce",
	"decisions":[{"decisionID":"x","decisionDate":"2026-11-20"}]}`

// TestARepeatInOtherWordsIsTheSame creates assets and repeats the creations in other words, also after a change and
// after a removal. Afterwards it repeats them with other quantities, of which one differs in the 30th digit alone.
// Promises: same-request
func TestARepeatInOtherWordsIsTheSame(t *testing.T) {
	for _, c := range []struct {
		reference string
		seed      registry.Seed
	}{{"", registry.Seed("seed")}, {"r", nil}, {"r", registry.Seed("seed")}} {
		one, other, _, _ := openSeeded(t)
		create := func(r *registry.Registry, text string) (registry.Created, error) {
			return r.Create(t.Context(), owner, registry.Input{Fields: parse(t, text), Reference: c.reference, Seed: c.seed})
		}
		first := expect.Get(create(one, validAsset))(t)
		if c.seed == nil {
			first.Token, first.Transfer = "", "" // told once
		}
		for _, text := range []string{anew, validAsset} {
			got, err := create(other, text)
			if err != nil || got.ID != first.ID || got.Token != first.Token || got.Transfer != first.Transfer {
				t.Errorf("reference %q, seed %q: got %s, %v; want %s", c.reference, c.seed, told(got), err, told(first))
			}
			patch := registry.Input{Fields: parse(t, `{"title":"y"}`)}
			expect.Get(one.Change(t.Context(), owner, first.ID, "token", patch))(t)
		}
		for _, quantity := range []string{"1." + strings.Repeat("0", 28) + "1", "1e999999999", "-1"} {
			text := strings.Replace(anew, "1.00", quantity, 1)
			if got, err := create(other, text); !strings.HasPrefix(strings.Join(places(err), " "), "header/") {
				t.Errorf("quantity %s: got %s, %v; want a refusal that names a header", quantity, told(got), err)
			}
		}
		expect.OK(t, one.Remove(t.Context(), owner, first.ID, "token", nil))
		if got, err := create(other, anew); fault.KindOf(err) != fault.Gone {
			t.Errorf("after a removal: got %s, %v; want a fault of kind Gone", told(got), err)
		}
	}
}

func TestDifferentRequestsAreNoRepeats(t *testing.T) {
	r, _, _, now := openSeeded(t)
	fields := parse(t, validAsset)
	in := registry.Input{Fields: fields, Seed: registry.Seed("seed")}
	first := expect.Get(r.Create(t.Context(), owner, in))(t)
	for _, c := range []struct {
		name   string
		by     identity.Identity
		in     registry.Input
		refuse string // place that the refusal names; "": the request creates another asset
	}{
		{"another body", owner, registry.Input{Fields: fields.With("title", "y"), Seed: in.Seed},
			"header/Idempotency-Key"},
		{"another version", owner, registry.Input{Fields: fields, Version: "2.4", Seed: in.Seed},
			"header/Idempotency-Key"},
		{"an invalid body", owner, registry.Input{Fields: fields.Without("title"), Seed: in.Seed},
			"header/Idempotency-Key"},
		{"another seed", owner, registry.Input{Fields: fields, Seed: registry.Seed("another")}, ""},
		{"no seed", owner, registry.Input{Fields: fields}, ""},
		{"the concierge", concierge, in, "url/permission"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.Create(t.Context(), c.by, c.in)
			if place := strings.Join(places(err), " "); place != c.refuse || err == nil && got.ID == first.ID {
				t.Errorf("got %s, %v; want another asset, or a refusal at %q", told(got), err, c.refuse)
			}
		})
	}
	now.pass(24 * time.Hour)
	second, err := r.Create(t.Context(), owner, registry.Input{Fields: fields.With("title", "y"), Seed: in.Seed})
	if err != nil || second.ID == first.ID || second.Token == first.Token {
		t.Errorf("a day later: got %s, %v; want another asset", told(second), err)
	}
	again, err := r.Create(t.Context(), owner, registry.Input{Fields: fields.With("title", "y"), Seed: in.Seed})
	if err != nil || told(again) != told(second) {
		t.Errorf("got  %s, %v\nwant %s", told(again), err, told(second))
	}
}

// TestAClockThatWasWrongEndsTheRepeats creates an asset while the clock is wrong. Then the clock is set right. If the clock
// was wrong by a day or more, the same key must create another asset.
func TestAClockThatWasWrongEndsTheRepeats(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, ahead := range []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year} {
		r, _, _, now := openSeeded(t)
		in := registry.Input{Fields: parse(t, validAsset), Seed: registry.Seed("seed")}
		now.pass(ahead)
		first := expect.Get(r.Create(t.Context(), owner, in))(t)
		now.pass(-ahead)
		second, err := r.Create(t.Context(), owner, in)
		if err != nil || (second.ID == first.ID) != (ahead.Abs() < day) {
			t.Errorf("a clock %v ahead: got %s, %v after %s; want the same asset only within a day", ahead, told(second), err, first.ID)
		}
		again, err := r.Create(t.Context(), owner, in)
		if err != nil || again.ID != second.ID {
			t.Errorf("a clock %v ahead: got %s, %v; want the repeat of %s", ahead, told(again), err, second.ID)
		}
	}
}

// Promises: idempotency-uses
func TestAKeyHasAMaximumNumberOfUses(t *testing.T) {
	r, _, _, now := openSeeded(t)
	in := registry.Input{Fields: parse(t, validAsset), Seed: registry.Seed("seed")}
	for range 100 {
		expect.Get(r.Create(t.Context(), owner, in))(t)
		now.pass(24 * time.Hour)
	}
	_, err := r.Create(t.Context(), owner, in)
	expect.ErrorIf(t, fault.KindOf(err) != fault.Invalid, "got %v, want kind Invalid", err)
	expect.NoDiff(t, cmp.Diff([]string{"header/Idempotency-Key"}, places(err)), "the places differ")
}

// TestManyRepeatsAtOnceCreateOneAsset repeats a creation in two processes at the same time. In the second case,
// the store refuses the first two ids. All answers must have the same asset.
func TestManyRepeatsAtOnceCreateOneAsset(t *testing.T) {
	for _, lost := range []int{0, 2} {
		t.Run(fmt.Sprint(lost, " void ids"), func(t *testing.T) {
			one, other, store, _ := openSeeded(t)
			store.left = lost
			in := registry.Input{Fields: parse(t, validAsset), Seed: registry.Seed("seed")}
			var wg sync.WaitGroup
			answers := make([]string, 20)
			for i := range answers {
				wg.Go(func() {
					r := []*registry.Registry{one, other}[i%2]
					created, err := r.Create(t.Context(), owner, in)
					expect.Try(t, err)
					answers[i] = told(created)
				})
			}
			wg.Wait()
			for _, answer := range answers {
				if answer != answers[0] {
					t.Errorf("got  %s\nwant %s", answer, answers[0])
				}
			}
		})
	}
}

// TestARepeatIsFoundUnderAnotherSeed runs two processes during a rotation of the registry's secret. Each request has
// one seed from the old secret and one from the new secret. One process creates an asset, with the old seed first. The
// other process gets repeats with the seeds in either order, and must answer with the same asset.
func TestARepeatIsFoundUnderAnotherSeed(t *testing.T) {
	for _, c := range []struct {
		name  string
		voids int
	}{{"no id is void", 0}, {"the first ids are void", 2}} {
		t.Run(c.name, func(t *testing.T) {
			one, other, store, now := openSeeded(t)
			store.left = c.voids
			fields := parse(t, validAsset)
			before := registry.Input{Fields: fields, Seed: registry.Seed("old"),
				Others: []registry.Seed{registry.Seed("new")}}
			after := registry.Input{Fields: fields, Seed: registry.Seed("new"),
				Others: []registry.Seed{registry.Seed("old")}}
			first, err := one.Create(t.Context(), owner, before)
			expect.OK(t, err)
			for _, in := range []registry.Input{after, before} {
				if again, err := other.Create(t.Context(), owner, in); err != nil || told(again) != told(first) {
					t.Errorf("got  %s, %v\nwant %s", told(again), err, told(first))
				}
			}
			after.Fields = fields.With("title", "y")
			_, err = other.Create(t.Context(), owner, after)
			expect.NoDiff(t, cmp.Diff([]string{"header/Idempotency-Key"}, places(err)),
				"another body: the places of the refusal differ")
			now.pass(24 * time.Hour)
			if second, err := other.Create(t.Context(), owner, after); err != nil || second.ID == first.ID {
				t.Errorf("a day later: got %s, %v; want another asset", told(second), err)
			}
		})
	}
}
