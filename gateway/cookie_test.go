package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
)

// ask sends a request with a SERVER_ID cookie. It returns the answer and the SERVER_ID that the answer sets. The
// argument and the result are "" for no cookie.
func ask(t *testing.T, s *Server, method, path, cookie string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader("body"))
	r.SetBasicAuth("key", "")
	r.Header.Set("Content-Type", jsonType)
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: "SERVER_ID", Value: cookie})
	}
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, r)
	for _, c := range recorder.Result().Cookies() {
		if c.Name == "SERVER_ID" {
			return recorder, c.Value
		}
	}
	return recorder, ""
}

func TestTheServersCookie(t *testing.T) {
	s := start(t, func(c *Config) { c.ServerID = "this" })
	for _, c := range []struct {
		name                 string
		method, path, cookie string
		status               int
		set                  string
	}{
		{"a read without a cookie", "GET", "/api/2.5/assets", "", 200, "this"},
		{"a read with this server's cookie", "GET", "/api/2.5/assets", "this", 200, ""},
		{"a read with another server's cookie", "GET", "/api/2.5/assets", "gone", 200, "this"},
		{"HEAD spore without a cookie", "HEAD", "/api/0/spore", "", 200, "this"},
		{"a page without a cookie", "GET", "/api/2.5/assets?offset=2026-11-20", "", 200, "this"},
		{"a page with this server's cookie", "GET", "/api/2.5/assets?offset=2026-11-20", "this", 200, ""},
		{"a page with another server's cookie", "GET", "/api/2.5/assets?limit=1&offset=2026-11-20", "gone", 404, "this"},
		{"a 2.4 page with another server's cookie", "GET", "/api/2.4/assets?offset=2026-11-20", "gone", 404, "this"},
		{"a page of version 0 with another server's cookie", "GET", "/api/0/assets?offset=2026-11-20", "gone", 404, "this"},
		{"HEAD of a page with another server's cookie", "HEAD", "/api/2.5/assets?offset=2026-11-20", "gone", 404, "this"},
		{"an empty offset with another server's cookie", "GET", "/api/2.5/assets?offset=", "gone", 200, "this"},
		// The answer to this read sets no new cookie. So the client keeps its old cookie, and its next page is still
		// refused.
		{"an asset with another server's cookie", "GET", "/api/2.5/assets/there", "gone", 200, ""},
		{"an asset without a cookie", "GET", "/api/2.5/assets/there", "", 200, "this"},
		{"HEAD spore with another server's cookie", "HEAD", "/api/0/spore", "gone", 200, ""},
		{"a write without a cookie", "POST", "/api/2.5/assets", "", 200, "this"},
		{"a write with this server's cookie", "PATCH", "/api/2.5/assets/there", "this", 200, ""},
		{"POST with another server's cookie", "POST", "/api/2.5/assets", "gone", 412, "this"},
		{"PATCH with another server's cookie", "PATCH", "/api/2.5/assets/there", "gone", 412, "this"},
		{"PUT with another server's cookie", "PUT", "/api/2.5/assets/there", "gone", 412, "this"},
		{"DELETE with another server's cookie", "DELETE", "/api/2.5/assets/there/related_processes/1", "gone", 412, "this"},
		{"a write with a cookie of 5000 bytes", "POST", "/api/2.5/assets", strings.Repeat("x", 5000), 412, "this"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, set := ask(t, s, c.method, c.path, c.cookie)
			if got.Code != c.status || set != c.set {
				t.Errorf("got %d and the cookie %q; want %d and %q", got.Code, set, c.status, c.set)
			}
			const offset, precondition = `"location":"querystring","name":"offset"`, `"location":"url","name":"precondition"`
			if c.status == 404 && c.method != "HEAD" && !strings.Contains(got.Body.String(), offset) {
				t.Errorf("got %s, want %s in it", got.Body, offset)
			}
			if c.status == 412 && !strings.Contains(got.Body.String(), precondition) {
				t.Errorf("got %s, want %s in it", got.Body, precondition)
			}
		})
	}
}

func TestAClientThatRepeatsWithTheNewCookieSucceeds(t *testing.T) {
	one, other := start(t, nil), start(t, func(c *Config) { c.Secrets = keyring.Ring{[]byte(strings.Repeat("o", 32))} })
	_, first := ask(t, other, "GET", "/api/2.5/assets", "")
	got, second := ask(t, one, "POST", "/api/2.5/assets", first)
	if got.Code != 412 || second == first {
		t.Fatalf("with the cookie %q: got %d and the cookie %q; want 412 and another cookie", first, got.Code, second)
	}
	if got, _ := ask(t, one, "POST", "/api/2.5/assets", second); got.Code != 200 {
		t.Errorf("with the new cookie: got %d, want 200", got.Code)
	}
	if got, set := ask(t, start(t, nil), "POST", "/api/2.5/assets", second); got.Code != 200 || set != "" {
		t.Errorf("at another gateway of the same registry: got %d and the cookie %q; want 200 and none", got.Code, set)
	}
}

// TestASynchroniserStartsOver follows the feed of one registry. Then a different registry answers at the same
// address, and the client first reads an asset there. The next page of the feed must still be refused, so that
// the client starts over.
func TestASynchroniserStartsOver(t *testing.T) {
	one, other := start(t, nil), start(t, func(c *Config) { c.Secrets = keyring.Ring{[]byte(strings.Repeat("o", 32))} })
	_, first := ask(t, other, "GET", "/api/2.5/assets", "")
	const page = "/api/2.5/assets?offset=2026-11-20T12:00:00Z"
	if got, set := ask(t, one, "GET", "/api/2.5/assets/there", first); got.Code != 200 || set != "" {
		t.Fatalf("an asset: got %d and the cookie %q; want 200 and none", got.Code, set)
	}
	got, second := ask(t, one, "GET", page, first)
	if got.Code != 404 || second == "" || second == first {
		t.Fatalf("the next page: got %d and the cookie %q; want 404 and another cookie than %q", got.Code, second, first)
	}
	if got, set := ask(t, one, "GET", "/api/2.5/assets", second); got.Code != 200 || set != "" {
		t.Errorf("the first page again: got %d and the cookie %q; want 200 and none", got.Code, set)
	}
	if got, _ := ask(t, one, "GET", page, second); got.Code != 200 {
		t.Errorf("the page after it: got %d, want 200", got.Code)
	}
}

func TestHealth(t *testing.T) {
	got, _ := ask(t, start(t, nil), "GET", "/api/2.5/health", "")
	if got.Code != 200 || !strings.Contains(got.Body.String(), `"status":"ok"`) {
		t.Errorf("got %d %s, want 200 and status ok", got.Code, got.Body)
	}
	down := start(t, func(c *Config) {
		c.Assets = nil
		c.AssetsURLs = []string{"http://127.0.0.1:1"}
	})
	if got, _ := ask(t, down, "GET", "/api/2.5/health", ""); got.Code != 503 || got.Header().Get("Retry-After") == "" {
		t.Errorf("without the asset service: got %d %s, want 503 with Retry-After", got.Code, got.Body)
	}
	full := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		faulthttp.Write(w, fault.New(fault.Unavailable, fault.URL, "store", "tokens.db: the disk is full"))
	})
	s := start(t, func(c *Config) { c.Auth = httpserver.InProcess(full) })
	for _, path := range []string{"/api/2.5/health", "/readyz"} {
		got, _ := ask(t, s, "GET", path, "")
		if got.Code != 503 || !strings.Contains(got.Body.String(), "tokens.db: the disk is full") {
			t.Errorf("%s with a full disk in authsvc: got %d %s, want 503 and the reason", path, got.Code, got.Body)
		}
	}
}

func TestSporeNamesEveryRoute(t *testing.T) {
	got, _ := ask(t, start(t, func(c *Config) { c.BaseURL = "https://registry.example" }), "GET", "/api/0/spore", "")
	var spore struct {
		BaseURL string `json:"base_url"`
		Version string
		Methods map[string]struct {
			Path, Method string
			Expected     []int `json:"expected_status"`
		}
	}
	if err := json.Unmarshal(got.Body.Bytes(), &spore); err != nil {
		t.Fatal(err)
	}
	if spore.BaseURL != "https://registry.example/api/2.5" || spore.Version != "2.5" {
		t.Errorf("got %+v, want the base URL https://registry.example/api/2.5 and version 2.5", spore)
	}
	for _, want := range []struct {
		name         string
		path, method string
		status       int
	}{
		{"get_assets", "/assets", "GET", 200},
		{"post_assets", "/assets", "POST", 201},
		{"patch_assets_id", "/assets/:id", "PATCH", 200},
		{"post_assets_id_items", "/assets/:id/items", "POST", 201},
		{"get_health", "/health", "GET", 200},
		{"get_assets_id_documents", "/assets/:id/documents", "GET", 200},
	} {
		m := spore.Methods[want.name]
		if m.Path != want.path || m.Method != want.method || len(m.Expected) != 1 || m.Expected[0] != want.status {
			t.Errorf("%s: got %+v, want %+v", want.name, m, want)
		}
	}
}

// TestTheServerIDOfASecretNeverChanges compares the value for a secret with the value that synchronisers of an
// existing registry have stored.
func TestTheServerIDOfASecretNeverChanges(t *testing.T) {
	if got, want := ServerIDOf([]byte(strings.Repeat("o", 32))), "1d9fbefddee611b9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAGatewayWithTwoSecretsInsistsOnAServerID(t *testing.T) {
	old, fresh := []byte(strings.Repeat("o", 32)), []byte(strings.Repeat("n", 32))
	c := Config{
		Assets: http.NotFoundHandler(), Auth: down{}, Log: slog.New(slog.DiscardHandler), Secrets: keyring.Ring{old, fresh},
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), ServerIDOf(old)) {
		t.Errorf("without a server id: got %v, want an error with %s in it", err, ServerIDOf(old))
	}
	c.ServerID = ServerIDOf(old)
	if err := c.Validate(); err != nil {
		t.Errorf("with a server id: got %v, want no error", err)
	}
}
