package registry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// counted counts the pages of changes that a search reads.
type counted struct {
	registry.Store
	pages int
}

func (c *counted) Changes(ctx context.Context, q registry.ChangesQuery) (registry.ChangesPage, error) {
	c.pages++
	return c.Store.Changes(ctx, q)
}

// TestAnAdministratorFindsAnAsset finds assets of three days, among many changes, by number, id and reference.
func TestAnAdministratorFindsAnAsset(t *testing.T) {
	r, _, store, now := openSeeded(t)
	counting := &counted{Store: store}
	finder := registry.New(counting, seeded{}, plainRules, now.read)
	ids, admin := map[string]string{}, identity.Identity{Broker: "console", Role: identity.Administrator}
	for day := 20; day < 23; day++ {
		for n := 1; n <= 12; n++ {
			in := referring(t, "x", fmt.Sprintf("r-%d-%d", day, n), nil)
			made := expect.Get(r.Create(t.Context(), owner, in))(t)
			ids[fmt.Sprintf("UA-AR-DGF-2026-11-%d-%06d", day, n)] = made.ID
			now.pass(7 * time.Minute)
			for range 9 { // other changes, which are no creations
				title := registry.Input{Fields: parse(t, fmt.Sprintf(`{"title":"%d"}`, now.read().UnixNano()))}
				expect.Get(r.Change(t.Context(), owner, made.ID, "token", title))(t)
				now.pass(time.Second)
			}
		}
		now.pass(24*time.Hour - now.read().Sub(now.read().Truncate(24*time.Hour)) + 12*time.Hour)
	}
	for number, id := range ids {
		a, _, err := finder.Find(t.Context(), admin, registry.Sought{Number: number})
		if err != nil || a.ID() != id || a.AssetID() != number {
			t.Errorf("%s: got the asset %s, %v; want %s", number, a.ID(), err, id)
		}
	}
	if most := 60 * len(ids); counting.pages > most {
		t.Errorf("got %d pages of changes for %d searches, want at most %d", counting.pages, len(ids), most)
	}
	first := ids["UA-AR-DGF-2026-11-20-000001"]
	for _, c := range []struct {
		name string
		s    registry.Sought
		id   string // "": not found
	}{
		{"id", registry.Sought{ID: first}, first},
		{"reference", registry.Sought{Broker: owner.Broker, Reference: "r-20-1"}, first},
		{"a reference of another broker", registry.Sought{Broker: "other", Reference: "r-20-1"}, ""},
		{"a number that no asset has", registry.Sought{Number: "UA-AR-DGF-2026-11-21-000999"}, ""},
		{"a day without assets", registry.Sought{Number: "UA-AR-DGF-2025-01-01-000001"}, ""},
		{"no day", registry.Sought{Number: "UA-AR-DGF-2026-99-99-000001"}, ""},
		{"no number", registry.Sought{Number: "UA-AR"}, ""},
		{"nothing", registry.Sought{}, ""},
	} {
		switch a, _, err := finder.Find(t.Context(), admin, c.s); {
		case c.id == "" && fault.KindOf(err) != fault.NotFound, c.id != "" && (err != nil || a.ID() != c.id):
			t.Errorf("%s: got %s, %v; want the asset %q", c.name, a.ID(), err, c.id)
		}
	}
	_, _, err := finder.Find(t.Context(), owner, registry.Sought{ID: first})
	expect.Fault(t, err, fault.Forbidden, "a broker")
}
