package authsvc

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/upstream"
)

var secret = bytes.Repeat([]byte("s"), identity.MinSecret)

func start(t *testing.T, log io.Writer) *Server {
	t.Helper()
	s, err := New(t.Context(), Config{
		Store:   "file:" + filepath.Join(t.TempDir(), "tokens.db"),
		Secrets: keyring.Ring{secret},
		Sandbox: true,
		Log:     slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newSigner(t *testing.T, secret []byte) *identity.Signer {
	t.Helper()
	signer, err := identity.NewSigner(keyring.Ring{secret}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestServicesCallOverTheNetworkAndInProcess(t *testing.T) {
	var log bytes.Buffer
	s := start(t, &log)
	network := httptest.NewServer(s.Handler())
	defer network.Close()
	for name, c := range map[string]struct {
		client *authapi.Client
		asset  string
	}{
		"network":    {authapi.NewClient(call(t, network.URL), newSigner(t, secret), "test"), strings.Repeat("0", 32)},
		"in process": {authapi.NewClient(httpserver.InProcess(s.Handler()), newSigner(t, secret), "test"), strings.Repeat("1", 32)},
	} {
		t.Run(name, func(t *testing.T) {
			client, asset := c.client, c.asset
			got, err := client.VerifyKey(t.Context(), authapi.Hash("broker3"))
			if want := (identity.Identity{Broker: "broker3", KeyID: "sandbox-broker3", Role: identity.Broker, Levels: "3"}); err != nil || got.Identity != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
			if _, err := client.VerifyKey(t.Context(), authapi.Hash("nobody")); fault.KindOf(err) != fault.Unauthorized {
				t.Errorf("an unknown key: %v", err)
			}
			issued, err := client.IssueTokens(t.Context(), authapi.IssueTokensRequest{AssetID: asset, Broker: "broker"})
			if err != nil {
				t.Fatal(err)
			}
			for token, want := range map[string]bool{issued.Token: true, issued.Transfer: false, "": false} {
				got, err := client.VerifyToken(t.Context(), authapi.VerifyTokenRequest{AssetID: asset, Broker: "broker", TokenHash: authapi.Hash(token), Sealed: issued.Sealed})
				if err != nil || got.Valid != want {
					t.Errorf("got %+v, %v; want %v", got, err, want)
				}
			}
			if strings.Contains(log.String(), issued.Token) || strings.Contains(log.String(), issued.Transfer) {
				t.Error("the log tells a token")
			}
		})
	}
}

func TestNobodyButServicesMayCall(t *testing.T) {
	s := start(t, io.Discard)
	for name, c := range map[string]struct {
		signer *identity.Signer
		caller identity.Identity
		status int
	}{
		"a service":           {newSigner(t, secret), identity.Identity{Broker: "gateway", Role: identity.Service}, 401}, // the key is unknown: it was looked up
		"a broker":            {newSigner(t, secret), identity.Identity{Broker: "broker", Role: identity.Broker}, 403},
		"the public":          {newSigner(t, secret), identity.Identity{}, 403},
		"a stranger's secret": {newSigner(t, bytes.Repeat([]byte("x"), 32)), identity.Identity{Role: identity.Service}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := c.signer.Sign(c.caller)
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodPost, authapi.VerifyKeyPath, strings.NewReader(`{"key_hash":"x"}`))
			req.Header.Set(identity.Header, signed)
			recorder := httptest.NewRecorder()
			s.Handler().ServeHTTP(recorder, req)
			lookedUp := strings.Contains(recorder.Body.String(), "Authorization")
			if recorder.Code != c.status || lookedUp != (name == "a service") {
				t.Errorf("got %d %s", recorder.Code, recorder.Body)
			}
		})
	}
}

func TestBadBodiesAreRefused(t *testing.T) {
	s := start(t, io.Discard)
	signed, err := newSigner(t, secret).Sign(identity.Identity{Role: identity.Service})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", "x", "{}x", `{"colour":1}`, `{"asset_id":1}`, `{}`, strings.Repeat(" ", 1<<17)} {
		req := httptest.NewRequest(http.MethodPost, authapi.IssueTokensPath, strings.NewReader(body))
		req.Header.Set(identity.Header, signed)
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, req)
		if recorder.Code != http.StatusBadRequest {
			t.Errorf("%.20q: got %d %s", body, recorder.Code, recorder.Body)
		}
	}
}

func TestAServiceThatIsDownIsUnavailable(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	broken := httpserver.InProcess(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	late, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		client *authapi.Client
		ctx    context.Context
	}{
		"refused":        {authapi.NewClient(call(t, down.URL), newSigner(t, secret), "test"), t.Context()},
		"another secret": {authapi.NewClient(httpserver.InProcess(start(t, io.Discard).Handler()), newSigner(t, bytes.Repeat([]byte("x"), 32)), "test"), t.Context()},
		"broken":         {authapi.NewClient(broken, newSigner(t, secret), "test"), t.Context()},
		"late":           {authapi.NewClient(call(t, down.URL), newSigner(t, secret), "test"), late},
	} {
		if _, err := c.client.VerifyKey(c.ctx, authapi.Hash("broker")); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAddKeyRefusesAnIDThatNoReportCouldName(t *testing.T) {
	store := "file:" + filepath.Join(t.TempDir(), "tokens.db")
	for id, good := range map[string]bool{"acme-1": true, "Ключ": true, "": false, "{x}": false, "a\x00b": false, strings.Repeat("x", 201): false} {
		if err := AddKey(t.Context(), store, authapi.Hash(id), identity.Identity{KeyID: id, Broker: "b", Role: identity.Broker}); (err == nil) != good {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}

func TestValidateTellsEveryFault(t *testing.T) {
	for _, store := range []string{"redis://:hunter2@a/x", "redis+sentinel://:hunter2@a,b", "redis+sentinel://:hunter2@a,b/name/x"} {
		err := Config{Store: store, Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler)}.Validate()
		if err == nil || !strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want it called malformed", store, err)
		}
	}
	good := Config{Store: "redis+sentinel://:p@a,b:1/name/2", Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler)}
	if err := good.Validate(); err != nil {
		t.Errorf("%s: got %v, want it good", good.Store, err)
	}
	err := Config{Store: "mongodb://hunter2", KeysFile: "/nowhere/keys.yaml", Timeout: -1, TransferLifetime: -1}.Validate()
	for _, says := range []string{"the store", "secret", "timeout", "log", "keys.yaml", "lifetime"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
}

// call returns the way to a server at an address.
func call(t *testing.T, url string) *upstream.Pool {
	t.Helper()
	pool, err := upstream.New(upstream.Config{Name: "authsvc", URLs: []string{url}, Log: slog.New(slog.DiscardHandler), Meter: new(telemetry.Telemetry).Meter()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestRevokeKeyRefusesTheKeysOfOperators(t *testing.T) {
	c := Config{
		Store: "file:" + filepath.Join(t.TempDir(), "tokens.db"), Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler),
	}
	if _, err := AdminKey(t.Context(), c, "n"); err != nil {
		t.Fatal(err)
	}
	if err := AddKey(t.Context(), c.Store, authapi.Hash("x"), identity.Identity{KeyID: "acme-1", Broker: "b", Role: identity.Broker}); err != nil {
		t.Fatal(err)
	}
	var operators string
	err := c.withStore(func(s store) error {
		keys, err := s.Keys(t.Context(), "acme-1", 10) // ids of operators' keys start with "key-"
		if err == nil {
			operators = keys[0].ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct{ id, says string }{
		{operators, "operators administer this key"},
		{"none", "there is no such key"},
		{"acme-1", ""},
		{"acme-1", "there is no such key"},
	} {
		err := RevokeKey(t.Context(), c.Store, r.id)
		if (err == nil) != (r.says == "") || err != nil && !strings.Contains(err.Error(), r.says) {
			t.Errorf("%s: got %v, want %q", r.id, err, r.says)
		}
	}
}
