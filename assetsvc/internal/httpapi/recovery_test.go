package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// TestARecoveryIsRefusedInOrder sends invalid and valid recoveries. Some have several faults, and the first
// must be reported (docs/contract.md, "Recovery").
func TestARecoveryIsRefusedInOrder(t *testing.T) {
	const good = `{"data":{"reason":"lost"}}`
	s := newService(t)
	at := s.created(t, validAsset) + "/recovery"
	missing := "/api/2.5/assets/" + strings.Repeat("0", 32) + "/recovery"
	admin, stale := identity.Administrator, http.Header{"If-Match": {`"x"`}}
	for _, c := range []struct {
		name    string
		headers http.Header
		exchange
	}{
		{"a missing asset", nil, exchange{"POST", missing, admin, "", good, 404, "asset_id"}},
		{"a missing asset without a reason", nil, exchange{"POST", missing, admin, "", `{"data":{}}`, 404, "asset_id"}},
		{"no data", nil, exchange{"POST", at, admin, "", `{}`, 400, "Data not available"}},
		{"no reason", nil, exchange{"POST", at, admin, "", `{"data":{}}`, 400, `"name":"reason"`}},
		{"a broker with the token", nil, exchange{"POST", at, identity.Broker, "token", good, 403, "permission"}},
		{"a concierge with a stale tag", stale, exchange{"POST", at, identity.Concierge, "", good, 403, "permission"}},
		{"a stale tag", stale, exchange{"POST", at, admin, "", good, 412, "precondition"}},
		{"version 2.4", nil, exchange{"POST", strings.Replace(at, "2.5", "2.4", 1), admin, "", good, 200,
			`"access":{"token":"token 2","transfer":"transfer 2"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.doWith(t, c.headers, c.exchange)
			expect.Equal(t, got.Header().Get("Cache-Control"), "no-store", "Cache-Control")
			if tagged := got.Header().Get("ETag") != ""; tagged != (c.status == 200) {
				t.Errorf("got the tag %q, want one after a success only", got.Header().Get("ETag"))
			}
		})
	}
}
