package registry_test

import (
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// TestABrokerSeesHisOwnAssets lists the assets of two brokers, before and after one asset is handed over. Each
// broker must see only the assets that it owns then.
func TestABrokerSeesHisOwnAssets(t *testing.T) {
	_, store, _, id := open(t)
	r := registry.New(store, &handing{}, plainRules, time.Now)
	fields := append(parse(t, validAsset), parse(t, `{"mode":"test"}`)...)
	test, err := r.Create(t.Context(), owner, registry.Input{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	other := identity.Identity{Broker: "new", Role: identity.Broker, Levels: "3"}
	testOnly := owner
	testOnly.Levels = "3t"
	check := func(doing string, by identity.Identity, want ...string) {
		t.Helper()
		page, err := r.Own(t.Context(), by, registry.Query{Limit: 10, Mode: registry.All})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range page.Entries {
			got = append(got, e.ID)
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] || len(got) > 1 && got[1] != want[1] {
			t.Errorf("%s: got %v, want %v", doing, got, want)
		}
	}
	check("two drafts", owner, id, test.ID)
	check("a test-only key", testOnly, test.ID)
	check("another broker", other)
	if _, err := r.ChangeOwner(t.Context(), other, id, nil, registry.Handover{Transfer: "t", Token: "x"}); err != nil {
		t.Fatal(err)
	}
	check("the former owner", owner, test.ID)
	check("the new owner", other, id)
	if _, err := r.Change(t.Context(), admin, id, "", registry.Input{
		Fields: parse(t, `{"status":"pending"}`),
	}); err != nil {
		t.Fatal(err)
	}
	check("the new owner, after the publication", other, id)
	_, err = r.Own(t.Context(), identity.Identity{}, registry.Query{Limit: 10})
	if fault.KindOf(err) != fault.Forbidden {
		t.Errorf("nobody: got %v, want a fault of kind Forbidden", err)
	}
}
