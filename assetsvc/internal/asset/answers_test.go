package asset_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/httpapi"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// tokens is an auth service that accepts every token for every asset.
type tokens struct{ registry.Tokens }

func (tokens) IssueTokens(context.Context, authapi.IssueTokensRequest) (authapi.IssueTokensResponse, error) {
	return authapi.IssueTokensResponse{Token: "token", Transfer: "transfer"}, nil
}

func (tokens) VerifyToken(context.Context, authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	return authapi.VerifyTokenResponse{Valid: true}, nil
}

const colourfulAsset = `{"assetType":"bounce","colour":"red","title":"x","description":"x","items":[` + colourfulItem + `],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x","colour":"red"}],
	"relatedProcesses":[{"relatedProcessID":"dddddddddddddddddddddddddddddddd","colour":"red"}],
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},
		"contactPoint":{"name":"x","telephone":"1","colour":"red"}}}`

const colourfulItem = `{"colour":"red","description":"x","classification":{"id":"06111000-3","description":"x"},
	"unit":{"code":"x","colour":"red"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}`

const plainDocument = `"documentType":"notice","title":"x","url":"https://docs.example/`

// TestAnswersOfOldVersionsHaveNoLaterField sends every request whose answer contains an asset. The asset has the
// field "colour" in every possible place. This field is new in version 2.6, which exists only in this test.
// Answers of older versions must not have it.
func TestAnswersOfOldVersionsHaveNoLaterField(t *testing.T) {
	asset.AddLaterFields(t)
	store := expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "assets.db"), boltstore.Options{Now: time.Now}))(t)
	defer store.Close()
	assets := registry.New(store, tokens{}, asset.Rules{Types: []string{"bounce"}, Zone: time.UTC}, time.Now)
	signer := expect.Get(identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now))(t)
	log := slog.New(slog.DiscardHandler)
	engine := httpserver.NewEngine(httpserver.Options{Log: log, Timeout: time.Minute, Ready: store.Ready})
	httpapi.New(assets, time.UTC, 1<<20, httpapi.NewMemory(1<<30)).Route(engine, signer)

	id, at := publishColourful(t, assets)
	for _, version := range []string{"2.4", "2.5"} {
		for _, c := range []struct {
			method, path string
			by           identity.Role
			body         string
			status       int
		}{
			{"GET", "/assets/" + id, "", "", 200},
			{"GET", "/assets/" + id + "?opt_pretty=1", "", "", 200},
			{"GET", "/assets?opt_fields=*", "", "", 200},
			{"GET", "/assets?opt_fields=colour,items,decisions", "", "", 200},
			{"GET", "/assets/" + id + "/revisions", identity.Administrator, "", 200},
			{"GET", "/assets/" + id + "/items", "", "", 200},
			{"GET", "/assets/" + id + "/items/" + at["items"], "", "", 200},
			{"GET", "/assets/" + id + "/decisions", "", "", 200},
			{"GET", "/assets/" + id + "/decisions/" + at["decisions"], "", "", 200},
			{"GET", "/assets/" + id + "/documents", "", "", 200},
			{"GET", "/assets/" + id + "/documents?all=1", "", "", 200},
			{"GET", "/assets/" + id + "/documents/" + at["documents"], "", "", 200},
			{"GET", "/assets/" + id + "/documents/" + at["documents"] + "?download=docs", "", "", 302},
			{"GET", "/assets/" + id + "/related_processes", "", "", 200},
			{"PATCH", "/assets/" + id, identity.Broker, `{"data":{"title":"y","items":[{"quantity":2}]}}`, 200},
			{"PATCH", "/assets/" + id + "/items/" + at["items"], identity.Broker, `{"data":{"quantity":3}}`, 200},
			{"PATCH", "/assets/" + id + "/documents/" + at["documents"], identity.Broker, `{"data":{"title":"y"}}`,
				200},
			{"PUT", "/assets/" + id + "/documents/" + at["documents"], identity.Broker,
				`{"data":{` + plainDocument + version + `"}}`, 200},
			{"PATCH", "/assets/" + id + "/related_processes/" + at["related_processes"], identity.Concierge,
				`{"data":{"identifier":"y"}}`, 200},
		} {
			r := httptest.NewRequest(c.method, "/api/"+version+c.path, strings.NewReader(c.body))
			signed := expect.Get(signer.Sign(identity.Identity{Broker: "broker", Role: c.by, Levels: "3"}))(t)
			r.Header.Set(identity.Header, signed)
			r.Header.Set("X-Access-Token", "token")
			got := httptest.NewRecorder()
			engine.ServeHTTP(got, r)
			if got.Code != c.status || strings.Contains(got.Body.String(), `colour"`) {
				t.Errorf("%s %s in %s: got %d %s, want %d without a later field",
					c.method, c.path, version, got.Code, got.Body, c.status)
			}
		}
	}
	stored, err := assets.Read(t.Context(), id)
	if got, want := strings.Count(string(stored.Body), `"colour"`), 10; err != nil || got != want {
		t.Errorf("got %d later fields in the store, %v; want %d, because the changes keep them", got, err, want)
	}
}

// publishColourful publishes an asset with the fields of version 2.6 and returns its id. The result `parts` has, for
// each kind of parts, the id of a part that also has these fields.
func publishColourful(t *testing.T, assets *registry.Registry) (id string, parts map[string]string) {
	t.Helper()
	broker := identity.Identity{Broker: "broker", Role: identity.Broker, Levels: "3"}
	input := func(text string) registry.Input {
		return registry.Input{Fields: expect.Get(record.Parse([]byte(text)))(t).(record.Object), Version: "2.6"}
	}
	created := expect.Get(assets.Create(t.Context(), broker, input(colourfulAsset)))(t)
	expect.Get(assets.Change(t.Context(), broker, created.ID, "token", input(`{"status":"pending"}`)))(t)
	parts = map[string]string{}
	for _, p := range asset.Parts() {
		place := registry.Place{Asset: created.ID, Part: p}
		if p.Path == "documents" { // add a second version of the document
			for i, verb := range []asset.Verb{asset.Add, asset.Replace} {
				text := `{"colour":"red",` + plainDocument + string(rune('0'+i)) + `"}`
				added, _, err := assets.ChangePart(t.Context(), broker, place, "token", verb, input(text))
				expect.OK(t, err)
				place.ID = added.Text("id")
			}
		}
		list, _, err := assets.ReadParts(t.Context(), place, asset.Newest)
		if err != nil || len(list) == 0 {
			t.Fatalf("got list %v, %v; want some %s", list, err, p.Path)
		}
		parts[p.Path] = list[len(list)-1].(record.Object).Text("id")
	}
	return created.ID, parts
}
