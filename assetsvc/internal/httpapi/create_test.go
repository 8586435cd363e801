package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/identity"
)

// TestReferences creates an asset with each form of a reference, twice (docs/contract.md, "Own references").
func TestReferences(t *testing.T) {
	s := newService(t)
	for _, c := range []struct {
		name  string
		names []string
		valid bool
	}{
		{"a reference", []string{"a"}, true},
		{"the longest reference", []string{strings.Repeat("~", 200)}, true},
		{"a reference that is too long", []string{strings.Repeat("~", 201)}, false},
		{"an empty reference", []string{""}, false},
		{"a reference with a blank", []string{"a b"}, false},
		{"two references", []string{"a", "b"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := http.Header{registry.ReferenceHeader: c.names}
			e := exchange{"POST", "/api/2.5/assets", identity.Broker, "", validAsset, 400, registry.ReferenceHeader}
			if c.valid {
				e.status, e.says = 201, "token"
			}
			first := s.doWith(t, headers, e)
			if !c.valid {
				return
			}
			e.status, e.says = 200, `"data"`
			again := s.doWith(t, headers, e)
			at := strings.TrimPrefix(first.Header().Get("Location"), "https://registry.example")
			read := s.do(t, exchange{"GET", at, "", "", "", 200, ""})
			for _, answer := range []http.Header{first.Header(), again.Header()} {
				if answer.Get("ETag") != read.Header().Get("ETag") || answer.Get("Location") != first.Header().Get("Location") {
					t.Errorf("got the headers %v, want the tag and the place of the asset in %v", answer, read.Header())
				}
			}
			if strings.Contains(again.Body.String(), `"access"`) || again.Body.String() != read.Body.String() {
				t.Errorf("got %s for the repeat, want the asset %s", again.Body, read.Body)
			}
		})
	}
}

// TestOnlyAServiceReportsAFile sends the report that a file has arrived.
func TestOnlyAServiceReportsAFile(t *testing.T) {
	s, api, _ := newServiceParts(t, NewMemory(1<<30))
	at := s.published(t)
	path := filesapi.CompletePath + at[strings.LastIndex(at, "/")+1:]
	s.do(t, exchange{"POST", path, identity.Service, "", "{}", 403, "permission"})
	api.registry = api.registry.WithFiles(struct{ registry.Files }{}, "", nil, time.Now)
	for _, e := range []exchange{
		{"POST", path, identity.Broker, "token", "{}", 403, "permission"},
		{"POST", path, identity.Service, "", "{", 400, "completion in JSON"},
		{"POST", path + "0", identity.Service, "", "{}", 404, "asset_id"},
		{"POST", path, identity.Service, "", "{}", 204, ""},
	} {
		s.do(t, e)
	}
}

// TestADraftIsRemoved sends removals of a draft that must be refused, and then a removal that must succeed.
func TestADraftIsRemoved(t *testing.T) {
	s := newService(t)
	at := s.created(t, validAsset)
	malformed := http.Header{"If-Match": {"x"}}
	s.doWith(t, malformed, exchange{"DELETE", at, identity.Broker, "token", "", 400, "If-Match"})
	s.doWith(t, malformed, exchange{"DELETE", at + "0", identity.Broker, "token", "", 404, "asset_id"})
	s.do(t, exchange{"DELETE", at, identity.Broker, "wrong", "", 403, ""})
	s.do(t, exchange{"GET", at, "", "", "", 200, ""})
	s.do(t, exchange{"DELETE", at, identity.Broker, "token", "", 204, ""})
	s.do(t, exchange{"GET", at, "", "", "", 404, "asset_id"})
}
