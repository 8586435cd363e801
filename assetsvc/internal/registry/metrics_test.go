package registry_test

import (
	"fmt"
	"testing"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/identity"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

func TestCreationsAndPublicationsAreCountedByBroker(t *testing.T) {
	r, _, _, id := open(t)
	meter := metrictest.New()
	r.Measure(telemetry.Counter(meter, "registry.assets.created", "", ""),
		telemetry.Counter(meter, "registry.assets.published", "", ""))
	expect.Get(r.Create(t.Context(), owner, registry.Input{Fields: parse(t, validAsset)}))(t)
	expect.FailsOf(t, "create from an empty body")(r.Create(t.Context(), owner, registry.Input{Fields: parse(t, `{}`)}))
	for _, change := range []string{`{"title":"x"}`, `{"status":"pending"}`, `{"title":"y"}`} {
		expect.Get(r.Change(t.Context(), owner, id, "token", registry.Input{Fields: parse(t, change)}))(t)
	}
	told := meter.Read(t)
	for _, name := range []string{"created", "published"} {
		expect.Equal(t, told["registry.assets."+name+"{"+owner.Broker+"}"], 1, "%s", name)
	}
}

func TestTheNumberOfBrokerLabelsIsBounded(t *testing.T) {
	r, _, _, _ := open(t)
	meter := metrictest.New()
	r.Measure(telemetry.Counter(meter, "registry.assets.created", "", ""),
		telemetry.Counter(meter, "registry.assets.published", "", ""))
	for range 2 {
		for n := range 60 {
			by := identity.Identity{Broker: fmt.Sprint("broker ", n), Role: identity.Broker, Levels: "3"}
			expect.Get(r.Create(t.Context(), by, registry.Input{Fields: parse(t, validAsset)}))(t)
		}
	}
	told := meter.Read(t)
	if got := told["registry.assets.created{other}"]; len(told) != 51 || got != 20 {
		t.Errorf("got %d labels and %v creations by others, want 51 and 20", len(told), got)
	}
	expect.Equal(t, told["registry.assets.created{broker 0}"], 2, "creations by broker 0")
}
