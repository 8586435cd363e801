package webhook_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// newStore returns a store in a file, which is closed at the end of the test.
func newStore(t *testing.T) *boltstore.Store {
	t.Helper()
	s := expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "assets.db"), boltstore.Options{Now: time.Now}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

var (
	firstSecret  = []byte("the first secret of the registry, long enough")
	secondSecret = []byte("the second secret of the registry, long enough")
)

func newSeals(t *testing.T, secrets ...[]byte) webhook.Seals {
	t.Helper()
	return expect.Get(webhook.NewSeals(keyring.Ring(secrets)))(t)
}

func mustSeal(t *testing.T, seals webhook.Seals) string {
	t.Helper()
	return expect.Get(seals.New())(t)
}

// TestResealKeepsTheSecrets reseals endpoints. Then the second secret alone is enough to open all seeds, and
// the secrets that receivers have are unchanged.
func TestResealKeepsTheSecrets(t *testing.T) {
	s, first, both := newStore(t), newSeals(t, firstSecret), newSeals(t, secondSecret, firstSecret)
	second := newSeals(t, secondSecret)
	old, rotated, fresh := mustSeal(t, first), mustSeal(t, first), mustSeal(t, second)
	for _, e := range []webhook.Endpoint{
		{ID: "a1", Broker: "b", Seal: old},
		{ID: "a2", Broker: "b", Seal: fresh, OldSeal: rotated},
		{ID: "a3", Broker: "b", Seal: fresh},
		{ID: "a4", Broker: "b", Seal: "a seal of nobody"},
	} {
		expect.OK(t, s.Put(t.Context(), e))
	}
	for _, want := range []webhook.Resealed{{All: 4, Anew: 2, Foreign: 1}, {All: 4, Foreign: 1}} {
		got, err := webhook.Reseal(t.Context(), s, both)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("got error %v; the counts differ (-want +got):\n%s", err, diff)
		}
	}
	for _, c := range []struct {
		id     string
		seal   func(webhook.Endpoint) string
		before string
	}{
		{"a1", func(e webhook.Endpoint) string { return e.Seal }, old},
		{"a2", func(e webhook.Endpoint) string { return e.OldSeal }, rotated},
		{"a3", func(e webhook.Endpoint) string { return e.Seal }, fresh},
	} {
		e := expect.Get(s.Endpoint(t.Context(), c.id))(t)
		want, _, err1 := both.Secret(c.before)
		got, _, err2 := second.Secret(c.seal(e))
		if got != want || err1 != nil || err2 != nil {
			t.Errorf("%s: got another secret than before (%v, %v), want the same", c.id, err1, err2)
		}
		if want := int64(2); c.id != "a3" && e.Generation != want || c.id == "a3" && e.Generation != 1 {
			t.Errorf("%s: got generation %d, want %d, and 1 of a3, whose seal is new", c.id, e.Generation, want)
		}
	}
}

func TestAStoreThatFailsEndsTheSealing(t *testing.T) {
	s, want := newStore(t), errors.New("the disk is full")
	former := mustSeal(t, newSeals(t, firstSecret))
	expect.OK(t, s.Put(t.Context(), webhook.Endpoint{ID: "a", Broker: "b", Seal: former}))
	full := &failing{Store: s, errs: []error{want}}
	got, err := webhook.Reseal(t.Context(), full, newSeals(t, secondSecret, firstSecret))
	expect.ErrorIf(t, !errors.Is(err, want) || got.Anew != 0, "got %+v, %v; want no new seal, and %v", got, err, want)
}
