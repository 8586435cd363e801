package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

func TestHealth(t *testing.T) {
	got := fetch(t, start(t, nil), "GET", "/api/2.5/health")
	if got.Code != 200 || !strings.Contains(got.Body.String(), `"status":"ok"`) {
		t.Errorf("got %d %s, want 200 and status ok", got.Code, got.Body)
	}
	down := start(t, func(c *Config) {
		c.Assets = nil
		c.AssetsURLs = []string{"http://127.0.0.1:1"}
	})
	if got := fetch(t, down, "GET", "/api/2.5/health"); got.Code != 503 || got.Header().Get("Retry-After") == "" {
		t.Errorf("without the asset service: got %d %s, want 503 with Retry-After", got.Code, got.Body)
	}
	full := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		faulthttp.Write(w, fault.New(fault.Unavailable, fault.URL, "store", "tokens.db: the disk is full"))
	})
	s := start(t, func(c *Config) { c.Auth = httpserver.InProcess(full) })
	for _, path := range []string{"/api/2.5/health", "/readyz"} {
		got := fetch(t, s, "GET", path)
		if got.Code != 503 || !strings.Contains(got.Body.String(), "tokens.db: the disk is full") {
			t.Errorf("%s with a full disk in authsvc: got %d %s, want 503 and the reason", path, got.Code, got.Body)
		}
	}
}

func TestSporeNamesEveryRoute(t *testing.T) {
	got := fetch(t, start(t, func(c *Config) { c.BaseURL = "https://registry.example" }), "GET", "/api/0/spore")
	var spore struct {
		BaseURL string `json:"base_url"`
		Version string
		Methods map[string]struct {
			Path, Method string
			Expected     []int `json:"expected_status"`
		}
	}
	expect.OK(t, json.Unmarshal(got.Body.Bytes(), &spore))
	if spore.BaseURL != "https://registry.example/api/2.5" || spore.Version != "2.5" {
		t.Errorf("got %+v, want the base URL https://registry.example/api/2.5 and version 2.5", spore)
	}
	for _, want := range []struct {
		name, path, method string
		status             int
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
	expect.Equal(t, ServerIDOf([]byte(strings.Repeat("o", 32))), "1d9fbefddee611b9", "")
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
	expect.Err(t, c.Validate(), nil, "with a server id")
}
