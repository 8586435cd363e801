package admin_test

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/keyring"
)

// TestTheAuditLogOutlivesItsSecret seals a log with a secret that consists of letters "a", and reseals it with a
// secret of letters "b". Afterwards, a registry that has only the new secret must find no problem in the log.
func TestTheAuditLogOutlivesItsSecret(t *testing.T) {
	store := openBolt(t)
	a, b := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	sealer := func(secrets ...[]byte) *audit.Sealer {
		t.Helper()
		s, err := audit.NewSealer(keyring.Ring(secrets))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	with := func(secrets ...[]byte) *audit.Checker {
		return audit.NewChecker(store, admin.Records(store), sealer(secrets...), time.Now)
	}
	write := func(name string, secrets ...[]byte) {
		t.Helper()
		service := admin.NewService(store, sealer(secrets...), slog.New(slog.DiscardHandler), time.Now)
		if _, err := service.CreateBroker(t.Context(), operator, adminapi.NewBroker{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	problems := func(s *audit.Checker) []string {
		t.Helper()
		found, err := s.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found.Problems
	}
	write("first", a)
	write("second", a)
	write("third", b, a)
	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := problems(with(a, b)); len(got) > 0 {
		t.Errorf("secrets a, b: got problems %q, want none", got)
	}
	if got := problems(with(b, a)); len(got) > 0 {
		t.Errorf("secrets b, a: got problems %q, want none", got)
	}
	want := []string{
		"entry 1 is sealed with a secret that this registry does not have",
		"entry 2 is sealed with a secret that this registry does not have",
	}
	if got := problems(with(b)); !slices.Equal(got, want) {
		t.Errorf("secret b before the reseal: got problems %q, want %q", got, want)
	}
	if n, err := with(b).Reseal(t.Context()); err == nil || n != 0 {
		t.Errorf("reseal without secret a: got %d, %v; want 0 and an error", n, err)
	}
	for _, want := range []int{2, 0} {
		if n, err := with(b, a).Reseal(t.Context()); err != nil || n != want {
			t.Errorf("reseal: got %d entries, %v; want %d", n, err, want)
		}
	}
	if got := problems(with(b)); len(got) > 0 {
		t.Errorf("secret b after the reseal: got problems %q, want none", got)
	}
	if now, err := store.Head(t.Context()); err != nil || now != head {
		t.Errorf("got head %v, %v; want %v as before", now, err, head)
	}
}
