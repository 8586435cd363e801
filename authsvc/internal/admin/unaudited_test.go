package admin_test

import (
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// commandKey stores an unaudited key, as a command of an earlier version did. The key's id is also its secret.
func (w *world) commandKey(t *testing.T, id string, role identity.Role) {
	t.Helper()
	k := apikey.Key{
		ID: id, Broker: "b", Created: w.now, Modified: w.now, Unaudited: true,
		Settings: apikey.Settings{Name: id, Role: role, Levels: "13", Test: true},
		Secrets:  []apikey.Secret{{Number: 1, Hash: authapi.Hash(id), Created: w.now}},
	}
	expect.OK(t, w.Restore(t.Context(), admin.Change{Key: &k}, []string{authapi.Hash(id)}))
}

func (w *world) problems(t *testing.T) []string {
	t.Helper()
	found, err := w.checker.Check(t.Context())
	expect.OK(t, err)
	return found.Problems
}

func TestAKeyOfACommandIsValidAndNeedsNoEntry(t *testing.T) {
	w := newWorld(t)
	w.commandKey(t, "acme-1", identity.Broker)
	got, err := w.verifier.Verify(t.Context(), authapi.Hash("acme-1"))
	want := identity.Identity{Broker: "b", KeyID: "acme-1", Role: identity.Broker, Levels: "13t"}
	if err != nil || got.Identity != want {
		t.Errorf("got %+v, %v; want %+v", got.Identity, err, want)
	}
	if got.GoodFor <= 0 || got.GoodFor >= time.Second { // short, because gateways do not hear when the key is removed
		t.Errorf("got GoodFor %v, want more than 0 and less than 1s", got.GoodFor)
	}
	if got := w.problems(t); len(got) > 0 {
		t.Errorf("got problems %q, want none", got)
	}
}

func TestAnOperatorsChangeOfACommandsKeyIsAudited(t *testing.T) {
	w := newWorld(t)
	w.commandKey(t, "acme-1", identity.Broker)
	_, second, err := w.service.RotateKey(t.Context(), operator, "acme-1", time.Hour)
	expect.OK(t, err)
	for _, secret := range []string{"acme-1", second} {
		expect.ErrOf(t, nil, "verify after the rotation")(w.verifier.Verify(t.Context(), authapi.Hash(secret)))
	}
	if got := w.problems(t); len(got) > 0 {
		t.Errorf("got problems %q, want none", got)
	}
	w.keys = onKeys(func(k *apikey.Key) { k.Unaudited, k.Settings.Levels = true, "1234" })
	want := "key acme-1 does not match entry 1"
	if got := strings.Join(w.problems(t), "; "); !strings.Contains(got, want) {
		t.Errorf("got problems %q, want %q", got, want)
	}
}

func TestAPlantedKeyNeverOpensTheAdminAPI(t *testing.T) {
	w := newWorld(t)
	w.commandKey(t, "planted", apikey.Operator)
	_, err := w.operators.SignedIn(t.Context(), authapi.Hash("planted"), local)
	expect.ErrorIf(t, fault.KindOf(err) != fault.Unauthorized, "got %v, want a fault of kind Unauthorized", err)
	want := "no entry describes key planted"
	expect.Equal(t, strings.Join(w.problems(t), "; "), want, "problems")
}
