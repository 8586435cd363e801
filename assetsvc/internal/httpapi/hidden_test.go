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
	created := s.do(t, exchange{"POST", "/api/2.5/assets", identity.Broker, "", withSecrets, 201, "secret office"})
	at := strings.TrimPrefix(created.Header().Get("Location"), "https://registry.example")
	s.do(t, exchange{"PATCH", at, identity.Broker, "token", `{"data":{"status":"pending"}}`, 200, "secret office"})
	item := regexp.MustCompile(`"items":\[\{"id":"([0-9a-f]{32})"`).FindStringSubmatch(created.Body.String())
	if item == nil {
		t.Fatalf("got %s, want an item with an id", created.Body)
	}
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
	created := s.do(t, exchange{"POST", "/api/2.5/assets", identity.Broker, "", withSecrets, 201, "secret office"})
	at := strings.TrimPrefix(created.Header().Get("Location"), "https://registry.example")
	s.do(t, exchange{"PATCH", at, identity.Broker, "token", `{"data":{"status":"pending"}}`, 200, ""})
	stored, err := api.registry.List(t.Context(), registry.Query{Limit: 1, Mode: registry.Real, Bodies: registry.AnySize})
	if err != nil || len(stored.Entries) != 1 {
		t.Fatalf("got %v, %v; want an asset", stored, err)
	}
	shown := map[string]string{}
	line, err := SnapshotLine(time.UTC, groups)(nil, stored.Entries[0])
	if err != nil {
		t.Fatal(err)
	}
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

// TestAnOwnershipChangeIsConditional sends an ownership change with each kind of If-Match. If the header is
// present and does not match the asset's tag, the change must be refused (docs/contract.md, "Conditional
// requests").
func TestAnOwnershipChangeIsConditional(t *testing.T) {
	const body = `{"data":{"id":"00000000000000000000000000000001","transfer":"transfer"}}`
	for _, c := range []struct {
		name    string
		ifMatch func(tag string) []string
		status  int
	}{
		{"no condition", func(string) []string { return nil }, 200},
		{"the tag", func(tag string) []string { return []string{tag} }, 200},
		{"any tag", func(string) []string { return []string{"*"} }, 200},
		{"another tag", func(string) []string { return []string{`"x"`} }, 412},
		{"the weak tag", func(tag string) []string { return []string{"W/" + tag} }, 200},
		{"another weak tag", func(string) []string { return []string{`W/"x"`} }, 412},
		{"no tag", func(string) []string { return []string{""} }, 412},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newService(t)
			at := s.published(t)
			before := s.do(t, exchange{"GET", at, identity.Broker, "", "", 200, ""})
			headers := http.Header{}
			if values := c.ifMatch(before.Header().Get("ETag")); values != nil {
				headers["If-Match"] = values
			}
			says := "errors"
			if c.status == 200 {
				says = `{"data":{`
			}
			s.doWith(t, headers, exchange{"POST", at + "/ownership", identity.Broker, "", body, c.status, says})
			after := s.do(t, exchange{"GET", at, identity.Broker, "", "", 200, ""})
			if changed := after.Body.String() != before.Body.String(); changed != (c.status == 200) {
				t.Errorf("got a change: %t, want one only with 200:\n%s", changed, after.Body)
			}
		})
	}
}
