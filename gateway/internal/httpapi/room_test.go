package httpapi

import (
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// TestARefusedBodyHoldsNoRoom uses up the part of a broker. Then bodies with a third key are refused. Once the
// broker has room again, the third key must have its whole part.
func TestARefusedBodyHoldsNoRoom(t *testing.T) {
	const size = 800
	r := newRoom(memory.NewBudget(size), size/keyPart, 16)
	key := func(id string) identity.Identity { return identity.Identity{Broker: "b", KeyID: id} }
	var releases []func()
	for _, id := range []string{"one", "two"} {
		release, err := r.hold(key(id), size/keyPart)
		expect.FatalIf(t, err != nil, "key %s: got %v, want room", id, err)
		releases = append(releases, release)
	}
	for range 2 * size / keyPart {
		if _, err := r.hold(key("three"), size/keyPart); fault.KindOf(err) != fault.TooMany {
			t.Fatalf("beyond the part of the broker: got %v, want a fault of kind TooMany", err)
		}
	}
	for _, release := range releases {
		release()
	}
	if _, err := r.hold(key("three"), size/keyPart); err != nil {
		t.Errorf("after the others: got %v, want room", err)
	}
}
