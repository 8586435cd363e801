package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// recovering is an auth service that gives the owner of the asset a new token at each call.
type recovering struct {
	tokens
	owner string
	asked []authapi.RecoverTokensRequest
}

func (k *recovering) RecoverTokens(
	_ context.Context, r authapi.RecoverTokensRequest,
) (authapi.RecoverTokensResponse, error) {
	if k.down {
		return authapi.RecoverTokensResponse{}, fault.New(fault.Unavailable, fault.URL, "auth", "down")
	}
	k.asked = append(k.asked, r)
	token := fmt.Sprint("token ", len(k.asked))
	issued := authapi.IssueTokensResponse{Token: token, Transfer: "transfer", Sealed: "sealed with " + token}
	return authapi.RecoverTokensResponse{IssueTokensResponse: issued, Owner: k.owner}, nil
}

var lost = registry.Recovery{Reason: "the token was lost", From: "192.0.2.1"}

// newRecovering returns a registry with one draft, the store and the auth service that it uses, and the id of the
// draft.
func newRecovering(t *testing.T) (r *registry.Registry, store *busy, keys *recovering, id string) {
	t.Helper()
	_, store, _, id = open(t)
	keys = &recovering{owner: "broker"}
	return registry.New(store, keys, plainRules, time.Now), store, keys, id
}

// TestARecoveryIsOneRevision recovers a draft. One write must store the new token record, the newest owner, and
// the administrator as author. The record of changes must not contain the reason.
func TestARecoveryIsOneRevision(t *testing.T) {
	r, store, keys, id := newRecovering(t)
	keys.owner = "newest owner" // the assets were restored from a backup, so only the auth service knows this owner
	by := admin
	by.KeyID = "k1"
	got, err := r.Recover(t.Context(), by, id, nil, lost)
	if err != nil || got.Token != "token 1" || got.Transfer != "transfer" {
		t.Fatalf("got %+v, %v; want the new tokens", got, err)
	}
	want := []authapi.RecoverTokensRequest{{
		AssetID: id, Reason: lost.Reason, Broker: "administrator", KeyID: "k1", From: lost.From,
	}}
	expect.NoDiff(t, cmp.Diff(want, keys.asked), "the requests of the auth service differ")
	stored, err := store.Get(t.Context(), id, registry.AnySize)
	if err != nil || stored.Revision != 2 || stored.Position != got.Position || stored.Sealed != "sealed with token 1" ||
		!strings.Contains(string(stored.Body), `"owner":"newest owner"`) {
		t.Errorf("stored: got %+v, %v; want revision 2 with the new record and the newest owner", stored, err)
	}
	changes := history(t, r, id)
	wanted := registry.Author{Broker: "administrator", KeyID: "k1", Role: asset.Administrator}
	expect.Equal(t, changes[0].By, wanted, "the author")
	if told := fmt.Sprint(changes); strings.Contains(told, "lost") {
		t.Errorf("got the changes %s, want no reason", told)
	}
}

func TestARecoveryIsRefused(t *testing.T) {
	r, store, keys, id := newRecovering(t)
	stale := func(int64) bool { return false }
	testOnly := admin
	testOnly.Levels = "t"
	for _, c := range []struct {
		name  string
		by    identity.Identity
		id    string
		guard registry.Guard
		want  fault.Kind
	}{
		{"the owner", owner, id, nil, fault.Forbidden},
		{"the concierge", concierge, id, nil, fault.Forbidden},
		{"nobody", identity.Identity{}, id, nil, fault.Forbidden},
		{"a test-only key", testOnly, id, nil, fault.Forbidden},
		{"the owner of another revision", owner, id, stale, fault.Forbidden},
		{"another revision", admin, id, stale, fault.Precondition},
		{"no asset", admin, strings.Repeat("0", 32), nil, fault.NotFound},
	} {
		if _, err := r.Recover(t.Context(), c.by, c.id, c.guard, lost); fault.KindOf(err) != c.want {
			t.Errorf("%s: got %v, want a fault of kind %v", c.name, err, c.want)
		}
	}
	expect.ErrorIf(t, len(keys.asked) > 0, "got the requests %+v of the auth service, want none", keys.asked)
	keys.down = true
	expect.FaultOf(t, fault.Unavailable, "without the audit log")(r.Recover(t.Context(), admin, id, nil, lost))
	if stored, err := store.Get(t.Context(), id, registry.AnySize); err != nil || stored.Revision != 1 {
		t.Errorf("stored: got %+v, %v; want revision 1", stored, err)
	}
}

// TestAnInterruptedRecoveryCanBeRepeated recovers an asset. The store returns an error, either without writing or
// after it has written. A second recovery must return other tokens, and store them.
func TestAnInterruptedRecoveryCanBeRepeated(t *testing.T) {
	for _, c := range []struct {
		name     string
		store    failing
		revision int64
	}{{"a failure before the write", failing{before: true}, 2}, {"a failure after the write", failing{after: true}, 3}} {
		t.Run(c.name, func(t *testing.T) {
			_, kept, keys, id := newRecovering(t)
			c.store.Store = kept.Store
			r := registry.New(&c.store, keys, plainRules, time.Now)
			if _, err := r.Recover(t.Context(), admin, id, nil, lost); fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("got %v, want kind Unavailable", err)
			}
			got, err := r.Recover(t.Context(), admin, id, nil, lost)
			if err != nil || got.Token != "token 2" {
				t.Fatalf("the repeat: got %+v, %v; want the second token", got, err)
			}
			stored, err := kept.Get(t.Context(), id, registry.AnySize)
			if err != nil || stored.Revision != c.revision || stored.Sealed != "sealed with token 2" {
				t.Errorf("stored: got %+v, %v; want revision %d with the second token", stored, err, c.revision)
			}
		})
	}
}

// TestARecoveryMeetsOtherChanges recovers an asset while other requests change it. The recovery must succeed,
// with one request to the auth service.
func TestARecoveryMeetsOtherChanges(t *testing.T) {
	r, store, keys, id := newRecovering(t)
	store.times = 3
	got, err := r.Recover(t.Context(), admin, id, nil, lost)
	if err != nil || got.Token != "token 1" || got.Revision != 5 || len(keys.asked) != 1 {
		t.Errorf("got %+v, %v after %d requests of the auth service; want revision 5 after one", got, err, len(keys.asked))
	}
}
