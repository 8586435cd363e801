package faults

import (
	"net/http"
	"testing"

	"asset-registry/assetsvc"
	"asset-registry/shared/mongotest"
)

// TestFreshReadsNeedAReplicaSet starts a service with fresh reads on a store that cannot answer barriers, which
// fresh reads need. The service must refuse all requests, because it cannot know how old its data is.
func TestFreshReadsNeedAReplicaSet(t *testing.T) {
	server := mongotest.Start(t)
	if server.Real {
		t.Skip("a replica set answers barriers")
	}
	store := server.URI(t, "barriers")
	l := &ledger{service: start(t, store)}
	l.create(t)
	asset := "/api/2.5/assets/" + l.assets[0].id
	if got := l.change(t, l.assets[0]); got != http.StatusOK {
		t.Fatalf("a change without fresh reads: got %d, want 200", got)
	}
	fresh := startWith(t, assetsvc.Config{Store: store, FreshReads: true})
	for _, c := range []struct {
		method, path, body string
		plain, fresh       int // status without fresh reads and with them
	}{
		{"GET", asset, "", http.StatusOK, http.StatusServiceUnavailable},
		{"GET", "/api/2.5/assets", "", http.StatusOK, http.StatusServiceUnavailable},
		{"GET", "/api/2.5/assets?opt_fields=title", "", http.StatusOK, http.StatusServiceUnavailable},
		{"GET", asset + "/revisions", "", http.StatusOK, http.StatusServiceUnavailable},
		{"PATCH", asset, `{"data":{"title":"new"}}`, http.StatusOK, http.StatusServiceUnavailable},
		{"GET", "/readyz", "", http.StatusOK, http.StatusServiceUnavailable},
	} {
		var into any
		if got := l.call(t, c.method, c.path, l.assets[0].token, c.body, &into); got != c.plain {
			t.Errorf("%s %s: got %d, want %d", c.method, c.path, got, c.plain)
		}
		if got := fresh.call(t, c.method, c.path, l.assets[0].token, c.body, &into); got != c.fresh {
			t.Errorf("%s %s with fresh reads: got %d, want %d", c.method, c.path, got, c.fresh)
		}
	}
}
