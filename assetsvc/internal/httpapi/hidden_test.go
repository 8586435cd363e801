package httpapi

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// withSecrets is an asset in which the values of all hidden fields contain "secret", and no other values do.
const withSecrets = `{"data":{"assetType":"bounce","title":"x","description":"x",
	"items":[{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},"quantity":1,
		"address":{"countryName":"x","streetAddress":"secret street","postalCode":"secret code"},
		"location":{"latitude":"1.5","longitude":"secret longitude","elevation":"secret elevation"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x"}],
	"assetHolder":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},
		"contactPoint":{"name":"secret holder","telephone":"1"}},
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},
		"address":{"countryName":"x","streetAddress":"secret office"},
		"contactPoint":{"name":"secret name","telephone":"1"},
		"additionalContactPoints":[{"name":"secret other","telephone":"1"}]}}}`

// TestHiddenFieldsAreForCallersWithAKey reads an asset in several ways, with and without a key. Only callers
// with a key may see hidden fields (docs/contract.md, "Hidden fields").
// Promises: hidden
func TestHiddenFieldsAreForCallersWithAKey(t *testing.T) {
	s, _, _ := newServiceParts(t, NewMemory(1<<30), asset.Contacts, asset.Addresses, asset.Locations)
	at := s.publishedAs(t, withSecrets)
	whole := s.do(t, exchange{"GET", at, identity.Broker, "", "", 200, "secret office"}).Body.String()
	item := regexp.MustCompile(`"items":\[\{"id":"([0-9a-f]{32})"`).FindStringSubmatch(whole)
	expect.FatalIf(t, item == nil, "got %s, want an item with an id", whole)
	for _, version := range []string{"2.4", "2.5"} {
		at := strings.Replace(at, "2.5", version, 1)
		for _, c := range []struct {
			name, path string
			withKey    bool // callers with a key see the hidden fields here
		}{
			{"an asset", at, true},
			{"an asset as a call", at + "?opt_jsonp=f", true},
			{"items", at + "/items", true},
			{"an item", at + "/items/" + item[1], true},
			{"a page with all fields", "/api/" + version + "/assets?opt_fields=*", false},
			{"a page with some fields", "/api/" + version + "/assets?opt_fields=items,assetCustodian,assetHolder", false},
		} {
			tags := map[string]bool{}
			for _, by := range []identity.Role{identity.Anonymous, identity.Broker, identity.Concierge} {
				for _, token := range []string{"", "token"} {
					got := s.do(t, exchange{"GET", c.path, by, token, "", http.StatusOK, ""})
					want := c.withKey && by != identity.Anonymous
					if shown := strings.Contains(got.Body.String(), "secret"); shown != want {
						t.Errorf("%s in %s by %q with the token %q: got the hidden fields: %t, want %t, in\n%s", c.name, version,
							by, token, shown, want, got.Body)
					}
					tags[got.Header().Get("ETag")] = true
				}
			}
			if want := 2; c.withKey && len(tags) != want {
				t.Errorf("%s in %s: got the tags %v, want %d: a cache must not take one view for the other", c.name, version,
					tags, want)
			}
		}
	}
}

// TestSnapshotsAndWebhooksHaveNoHiddenFields shows an asset as snapshots and webhooks show it.
func TestSnapshotsAndWebhooksHaveNoHiddenFields(t *testing.T) {
	groups := []asset.Group{asset.Contacts, asset.Addresses, asset.Locations}
	s, api, _ := newServiceParts(t, NewMemory(1<<30), groups...)
	s.publishedAs(t, withSecrets)
	stored, err := api.registry.List(t.Context(), registry.Query{Limit: 1, Mode: registry.Real, Bodies: registry.AnySize})
	expect.FatalIf(t, err != nil || len(stored.Entries) != 1, "got %v, %v; want an asset", stored, err)
	shown := map[string]string{}
	line := expect.Get(SnapshotLine(time.UTC, groups)(nil, stored.Entries[0]))(t)
	shown["a snapshot"] = string(line)
	feed := NewWebhookFeed(api.registry, nil, time.UTC, groups)
	for _, version := range routes.Targets() {
		page, err := feed.Page(t.Context(), webhook.Selection{Version: version, Whole: true}, assetfilter.Set{}, 0)
		if err != nil || len(page.Entries) != 1 {
			t.Fatalf("webhooks of %s: got %v, %v; want an asset", version, page, err)
		}
		shown["a webhook in "+version] = string(page.Entries[0].Data)
	}
	for name, text := range shown {
		if !strings.Contains(text, `"status":"pending"`) || strings.Contains(text, "secret") {
			t.Errorf("%s: got %s, want the asset without hidden fields", name, text)
		}
	}
}
