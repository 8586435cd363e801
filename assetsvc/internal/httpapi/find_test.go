package httpapi

import (
	"strings"
	"testing"

	"asset-registry/shared/identity"
)

// TestOnlyAdministratorsFindAssets asks for a draft in each way.
func TestOnlyAdministratorsFindAssets(t *testing.T) {
	s := newService(t)
	at := s.created(t, strings.Replace(validAsset, `{"data":{`, `{"data":{"mode":"test",`, 1))
	id := at[strings.LastIndex(at, "/")+1:]
	for _, c := range []exchange{
		{"GET", "/find-asset?id=" + id, identity.Administrator, "", "", 200, `"mode":"test"`},
		{"GET", "/find-asset?id=" + id, identity.Administrator, "", "", 200, `"status":"draft"`},
		{"GET", "/find-asset?id=" + strings.Repeat("0", 32), identity.Administrator, "", "", 404, "asset_id"},
		{"GET", "/find-asset?number=UA-AR-DGF-2020-01-01-000001", identity.Administrator, "", "", 404, "asset_id"},
		{"GET", "/find-asset?broker=b&reference=none", identity.Administrator, "", "", 404, "asset_id"},
		{"GET", "/find-asset?id=" + id, identity.Broker, "", "", 403, "only administrators"},
		{"GET", "/find-asset?id=" + id, identity.Anonymous, "", "", 403, "permission"},
	} {
		s.do(t, c)
	}
}
