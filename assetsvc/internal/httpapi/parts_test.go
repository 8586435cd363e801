package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// tokens is an auth service that accepts only the owner token "token".
type tokens struct{ registry.Tokens }

func (tokens) IssueTokens(context.Context, authapi.IssueTokensRequest) (authapi.IssueTokensResponse, error) {
	return authapi.IssueTokensResponse{Token: "token", Transfer: "transfer"}, nil
}

func (tokens) VerifyToken(_ context.Context, r authapi.VerifyTokenRequest) (authapi.VerifyTokenResponse, error) {
	return authapi.VerifyTokenResponse{Valid: r.TokenHash == authapi.Hash("token")}, nil
}

func (tokens) ChangeOwner(_ context.Context, r authapi.ChangeOwnerRequest) (authapi.ChangeOwnerResponse, error) {
	return authapi.ChangeOwnerResponse{Owner: r.Broker, Sealed: "sealed for " + r.Broker}, nil
}

func (tokens) RecoverTokens(
	_ context.Context, r authapi.RecoverTokensRequest,
) (authapi.RecoverTokensResponse, error) {
	issued := authapi.IssueTokensResponse{Token: "token 2", Transfer: "transfer 2", Sealed: "sealed for " + r.From}
	return authapi.RecoverTokensResponse{IssueTokensResponse: issued, Owner: "broker"}, nil
}

// service is an API with a separate store. Tests call it like the gateway does.
type service struct {
	handler http.Handler
	signer  *identity.Signer
}

func newService(t *testing.T) service {
	t.Helper()
	return newServiceWith(t, NewMemory(1<<30))
}

func newServiceWith(t *testing.T, m Memory) service {
	t.Helper()
	s, _, _ := newServiceParts(t, m)
	return s
}

// newStore returns an empty store in a file of its own.
func newStore(t *testing.T, now func() time.Time) *boltstore.Store {
	t.Helper()
	store := expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "assets.db"), boltstore.Options{Now: now}))(t)
	t.Cleanup(func() { expect.Try(t, store.Close()) })
	return store
}

// newSigner returns the signer of the gateway's headers.
func newSigner(t *testing.T) *identity.Signer {
	t.Helper()
	return expect.Get(identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now))(t)
}

// newServiceParts returns a service, its API, and the engine, to which the test may add routes. The service
// hides the given groups of fields.
func newServiceParts(t *testing.T, m Memory, hidden ...asset.Group) (service, *API, *gin.Engine) {
	t.Helper()
	store, signer := newStore(t, time.Now), newSigner(t)
	engine := httpserver.NewEngine(httpserver.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Minute,
		Ready: store.Ready})
	rules := asset.Rules{Types: []string{"bounce"}, Zone: time.UTC}
	api := New(registry.New(store, tokens{}, rules, time.Now), time.UTC, 1<<20, m)
	api.Hide(hidden)
	api.Route(engine, signer)
	return service{engine, signer}, api, engine
}

// exchange is a request with the expected answer.
type exchange struct {
	method, path string
	by           identity.Role
	token, body  string
	status       int
	says         string // substring of the answer's body
}

func (s service) do(t *testing.T, e exchange) *httptest.ResponseRecorder {
	t.Helper()
	return s.doWith(t, nil, e)
}

// doWith sends the request of the exchange e with additional headers, and checks the answer.
func (s service) doWith(t *testing.T, headers http.Header, e exchange) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.answer(t, recorder, headers, e)
	if recorder.Code != e.status || !strings.Contains(recorder.Body.String(), e.says) {
		t.Errorf("%s %s: got %d %s; want %d and %q", e.method, e.path, recorder.Code, recorder.Body, e.status, e.says)
	}
	return recorder
}

// answer sends the request of the exchange e with additional headers. The answer goes to w.
func (s service) answer(t *testing.T, w http.ResponseWriter, headers http.Header, e exchange) {
	t.Helper()
	s.answerTo(t, identity.Identity{Broker: string(e.by), Role: e.by, Levels: "3"}, w, headers, e)
}

// answerTo is like the method `answer`, but the given caller sends the request.
func (s service) answerTo(
	t *testing.T, by identity.Identity, w http.ResponseWriter, headers http.Header, e exchange,
) {
	t.Helper()
	r := httptest.NewRequest(e.method, e.path, strings.NewReader(e.body))
	signed := expect.Get(s.signer.Sign(by))(t)
	maps.Copy(r.Header, headers)
	r.Header.Set(identity.Header, signed)
	r.Header.Set(httpserver.BaseURLHeader, "https://registry.example")
	r.Header.Set(tokenHeader, e.token)
	s.handler.ServeHTTP(w, r)
}

const validAsset = `{"data":{"assetType":"bounce","title":"x","description":"x",
	"items":[{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"x"}],
	"assetCustodian":{"name":"x","identifier":{"scheme":"UA-EDR","id":1},"address":{"countryName":"x"},"contactPoint":{"name":"x","telephone":"1"}}}}`

// made sends the request of the exchange e, which creates something, and returns its path.
func (s service) made(t *testing.T, e exchange) string {
	t.Helper()
	return strings.TrimPrefix(s.do(t, e).Header().Get("Location"), "https://registry.example")
}

// created creates an asset with the given body. It returns the asset's path.
func (s service) created(t *testing.T, body string) string {
	t.Helper()
	return s.made(t, exchange{"POST", "/api/2.5/assets", identity.Broker, "", body, 201, `"token":"token"`})
}

// published creates and publishes an asset. It returns the asset's path.
func (s service) published(t *testing.T) string {
	t.Helper()
	return s.publishedAs(t, validAsset)
}

// publishedAs is like the method `published`, but the asset has the given body.
func (s service) publishedAs(t *testing.T, body string) string {
	t.Helper()
	path := s.created(t, body)
	s.do(t, exchange{"PATCH", path, identity.Broker, "token", `{"data":{"status":"pending"}}`, 200, `"pending"`})
	return path
}

func TestPartsAreResources(t *testing.T) {
	s := newService(t)
	for _, version := range []string{"2.4", "2.5"} {
		at := strings.Replace(s.published(t), "2.5", version, 1)
		for _, c := range []struct {
			name                                       string
			by                                         identity.Role
			valid, merge, shows, otherVerb, otherShows string
		}{
			{"items",
				identity.Broker, `{"data":{"description":"x","classification":{"id":"06111000-3","description":"x"},"unit":{"code":"x"},"quantity":1,"address":{"countryName":"x"},"registrationDetails":{}}}`,
				`{"data":{"quantity":2.50}}`, `"quantity":2.5,`, "", "",
			},
			{"decisions",
				identity.Broker, `{"data":{"decisionDate":"2026-11-21","decisionID":"y"}}`,
				`{"data":{"title":"z"}}`, `"decisionOf":"asset"`, "", "",
			},
			{"documents",
				identity.Broker, `{"data":{"documentType":"notice","title":"x","url":"https://docs.example/get/1?x=y&z"}}`,
				`{"data":{"title":"z"}}`, `"title":"z"`, "PUT", `"title":"w"`,
			},
			{"related_processes",
				identity.Concierge, `{"data":{"type":"lot","relatedProcessID":"dddddddddddddddddddddddddddddddd"}}`,
				`{"data":{"identifier":"z"}}`, `"identifier":"z"`, "DELETE", `{"data":null}`,
			},
		} {
			t.Run(version+" "+c.name, func(t *testing.T) {
				all := at + "/" + c.name
				created := s.do(t, exchange{"POST", all, c.by, "token", c.valid, 201, `{"data":{"id":"`})
				one, ok := strings.CutPrefix(created.Header().Get("Location"), "https://registry.example")
				if !ok || !strings.HasPrefix(one, all+"/") {
					t.Fatalf("Location: got %q, want a path below %s", created.Header().Get("Location"), all)
				}
				before := s.do(t, exchange{"GET", at, "", "", "", 200, `"dateModified":"`}).Body.String()
				s.do(t, exchange{"PATCH", one, c.by, "token", `{"data":{}}`, 200,
					strings.TrimSuffix(created.Body.String(), "}")})
				expect.Equal(t, s.do(t, exchange{"GET", at, "", "", "", 200, ""}).Body.String(), before,
					"after an empty change")
				changed := s.do(t, exchange{"PATCH", one, c.by, "token", c.merge, 200, c.shows})
				if after := s.do(t, exchange{"GET", at, "", "", "", 200, c.shows}).Body.String(); after == before {
					t.Error("after a change: got the asset as before, want a changed one")
				}
				s.do(t, exchange{"GET", one, "", "", "", 200, c.shows})
				pretty := s.do(t, exchange{"PATCH", one + "?opt_pretty=1", c.by, "token", `{"data":{}}`, 200, ""})
				for query, tag := range map[string]string{"": changed.Header().Get("ETag"),
					"?opt_pretty=1": pretty.Header().Get("ETag")} {
					if got := s.do(t, exchange{"GET", one + query, "", "", "", 200, ""}).Header().Get("ETag"); got != tag {
						t.Errorf("GET %s%s: got the tag %s, want the one of the change, %s", one, query, got, tag)
					}
					s.doWith(t, http.Header{"If-None-Match": {tag}}, exchange{"GET", one + query, "", "", "", 304, ""})
				}
				s.doWith(t, http.Header{"If-None-Match": {"x"}}, exchange{"GET", one, "", "", "", 400, "If-None-Match"})
				s.do(t, exchange{"GET", one + "?%zz", "", "", "", 400, `"name":"query"`})
				s.do(t, exchange{"GET", all + "?%zz", "", "", "", 400, `"name":"query"`})
				if c.name != "documents" {
					s.do(t, exchange{"GET", one + "?download=1", "", "", "", 200, c.shows})
				}
				s.do(t, exchange{"HEAD", one, "", "", "", 200, ""})
				s.do(t, exchange{"GET", all, "", "", "", 200, `{"data":[{"id":"`})
				s.do(t, exchange{"GET", all + "?opt_jsonp=f&opt_pretty=1", "", "", "", 200, "f({\n    \"data\": ["})
				s.do(t, exchange{"GET", one + "x", "", "", "", 404,
					`{"location":"url","name":"` + part(c.name).ID + `","description":"Not Found"}`})
				s.do(t, exchange{"GET", strings.Replace(one, "/assets/", "/assets/x", 1), "", "", "", 404,
					`"name":"asset_id"`})
				s.do(t, exchange{"PATCH", one + "x", identity.Administrator, "", "no JSON", 404, part(c.name).ID})
				s.do(t, exchange{"PATCH", one, identity.Administrator, "", "no JSON", 403,
					`{"location":"url","name":"permission","description":"Forbidden: only the `})
				s.do(t, exchange{"PATCH", one, c.by, "token", "no JSON", 400, `"name":"data"`})
				s.do(t, exchange{"POST", all, c.by, "token", `{"data":[]}`, 400, "Data not available"})
				s.do(t, exchange{"POST", all, c.by, "token", `{"data":{"colour":1}}`, 400,
					`"Rogue field"`})
				if c.by == identity.Broker {
					indented := s.do(t, exchange{"POST", all + "?opt_pretty=1", c.by, "token", c.valid, 201, "\n    \"data\": {"})
					second := strings.TrimPrefix(indented.Header().Get("Location"), "https://registry.example")
					s.doWith(t, http.Header{"If-None-Match": {indented.Header().Get("ETag")}},
						exchange{"GET", second, "", "", "", 304, ""})
					s.do(t, exchange{"PATCH", one, c.by, "wrong", "no JSON", 403, "permission"})
					s.do(t, exchange{"PATCH", one, c.by, "", "no JSON", 400, `"name":"data"`})
					s.do(t, exchange{"PATCH", one, c.by, "", `{"data":{}}`, 403, "permission"})
					s.do(t, exchange{"PATCH", one, c.by, "", `{"access":{"token":"token"},"data":{}}`, 200, c.shows})
					s.do(t, exchange{"PATCH", one, c.by, "", `{"access":{"token":"token"}}`, 400, "Data not available"})
				}
				if c.otherVerb != "" {
					s.do(t, exchange{c.otherVerb, one, c.by, "token",
						strings.Replace(c.valid, `"title":"x"`, `"title":"w"`, 1), 200, c.otherShows})
				} else {
					s.do(t, exchange{"PUT", one, c.by, "token", c.valid, 404, "method_not_allowed"})
					s.do(t, exchange{"DELETE", one, c.by, "token", "", 404, "method_not_allowed"})
				}
			})
		}
	}
}

func part(path string) asset.Part {
	for _, p := range asset.Parts() {
		if p.Path == path {
			return p
		}
	}
	panic(path) // only a mistake in the test leads here
}

func TestDocumentsHaveVersions(t *testing.T) {
	m := NewMemory(1 << 30)
	s := newServiceWith(t, m)
	all := s.published(t) + "/documents"
	document := func(title, url string) string {
		return `{"data":{"documentType":"notice","title":"` + title + `","url":"https://docs.example/` + url + `"}}`
	}
	one := s.made(t, exchange{"POST", all, identity.Broker, "token", document("one", "1"), 201, `"author":"asset_owner"`})
	s.do(t, exchange{"GET", one, "", "", "", 200, `"previousVersions":[]}`})
	s.do(t, exchange{"PUT", one, identity.Broker, "token", document("two", "2"), 200, `"title":"two"`})
	s.do(t, exchange{"GET", one, "", "", "", 200, `"previousVersions":[{"id":`})
	for _, c := range []struct {
		query string
		want  int
	}{{"", 2}, {"?all=", 2}, {"?all=1", 3}} {
		var listed struct{ Data []any }
		got := s.do(t, exchange{"GET", all + c.query, "", "", "", 200, `"two"`})
		if err := json.Unmarshal(got.Body.Bytes(), &listed); err != nil || len(listed.Data) != c.want {
			t.Errorf("%q: got %d documents, %v; want %d", c.query, len(listed.Data), err, c.want)
		}
	}
	got := s.do(t, exchange{"GET", one + "?download=1", "", "", "", 302, `{"data":{`})
	expect.Equal(t, got.Header().Get("Location"), "https://docs.example/1", "download, Location")
	s.do(t, exchange{"GET", one + "?download=3", "", "", "", 404,
		`{"location":"url","name":"download","description":"Not Found"}`})
	for m.Answers.Hold(memory.Small) || m.Answers.Hold(1) {
	}
	s.do(t, exchange{"GET", one + "?download=1", "", "", "", 503, "errors"})
}

// Promises: asset-size
func TestTheSizeOfAnAssetIsBounded(t *testing.T) {
	s := newService(t)
	all := s.published(t) + "/documents"
	large := `{"data":{"documentType":"notice","title":"x","url":"https://example.org/x","description":"` +
		strings.Repeat("x", 250_000) + `"}}`
	for range 16 {
		s.do(t, exchange{"POST", all, identity.Broker, "token", large, 201, ""})
	}
	s.do(t, exchange{"POST", all, identity.Broker, "token", large, 413, "The asset would have more than"})
}
