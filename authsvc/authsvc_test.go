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
	"asset-registry/shared/testing/expect"
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
	expect.OK(t, err)
	t.Cleanup(func() { expect.Try(t, s.Close()) })
	return s
}

func newSigner(t *testing.T, secret []byte) *identity.Signer {
	t.Helper()
	signer, err := identity.NewSigner(keyring.Ring{secret}, time.Now)
	expect.OK(t, err)
	return signer
}

func TestServicesCallOverTheNetworkAndInProcess(t *testing.T) {
	var log bytes.Buffer
	s := start(t, &log)
	network := httptest.NewServer(s.Handler())
	defer network.Close()
	signer := newSigner(t, secret)
	for name, c := range map[string]struct {
		client *authapi.Client
		asset  string
	}{
		"over the network": {authapi.NewClient(call(t, network.URL), signer, "test"), strings.Repeat("0", 32)},
		"in process": {
			authapi.NewClient(httpserver.InProcess(s.Handler()), signer, "test"), strings.Repeat("1", 32),
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, asset := c.client, c.asset
			got, err := client.VerifyKey(t.Context(), authapi.Hash("broker3"))
			want := identity.Identity{Broker: "broker3", KeyID: "sandbox-broker3", Role: identity.Broker, Levels: "3"}
			expect.ErrorIf(t, err != nil || got.Identity != want, "got %+v, %v; want %+v", got, err, want)
			expect.FaultOf(t, fault.Unauthorized, "an unknown key")(client.VerifyKey(t.Context(),
				authapi.Hash("nobody")))
			issued, err := client.IssueTokens(t.Context(), authapi.IssueTokensRequest{AssetID: asset, Broker: "broker"})
			expect.OK(t, err)
			for token, want := range map[string]bool{issued.Token: true, issued.Transfer: false, "": false} {
				got, err := client.VerifyToken(t.Context(), authapi.VerifyTokenRequest{
					AssetID: asset, Broker: "broker", TokenHash: authapi.Hash(token), Sealed: issued.Sealed,
				})
				expect.ErrorIf(t, err != nil || got.Valid != want, "got %+v, %v; want Valid %v", got, err, want)
			}
			if strings.Contains(log.String(), issued.Token) || strings.Contains(log.String(), issued.Transfer) {
				t.Errorf("got log %s, want no token in it", log.String())
			}
		})
	}
}

func TestNobodyButServicesMayCall(t *testing.T) {
	s := start(t, io.Discard)
	signer, stranger := newSigner(t, secret), newSigner(t, bytes.Repeat([]byte("x"), 32))
	for name, c := range map[string]struct {
		signer *identity.Signer
		caller identity.Identity
		status int
	}{
		// The service looks up the key. The key is unknown, so the answer is 401.
		"a service":                    {signer, identity.Identity{Broker: "gateway", Role: identity.Service}, 401},
		"a broker":                     {signer, identity.Identity{Broker: "broker", Role: identity.Broker}, 403},
		"an anonymous caller":          {signer, identity.Identity{}, 403},
		"a caller with another secret": {stranger, identity.Identity{Role: identity.Service}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := c.signer.Sign(c.caller)
			expect.OK(t, err)
			req := httptest.NewRequest(http.MethodPost, authapi.VerifyKeyPath, strings.NewReader(`{"key_hash":"x"}`))
			req.Header.Set(identity.Header, signed)
			recorder := httptest.NewRecorder()
			s.Handler().ServeHTTP(recorder, req)
			lookedUp := strings.Contains(recorder.Body.String(), "Authorization")
			if recorder.Code != c.status || lookedUp != (name == "a service") {
				t.Errorf("got %d %s, want %d with a lookup: %t", recorder.Code, recorder.Body, c.status, name == "a service")
			}
		})
	}
}

// TestResealTakesFewRecordsAtATime sends as many records as a request may have, and one more.
func TestResealTakesFewRecordsAtATime(t *testing.T) {
	s := start(t, io.Discard)
	signed, err := newSigner(t, secret).Sign(identity.Identity{Role: identity.Service})
	expect.OK(t, err)
	for records, want := range map[int]int{authapi.MaxReseal: 200, authapi.MaxReseal + 1: 400} {
		body := `{"sealed":["x"` + strings.Repeat(`,"x"`, records-1) + `]}`
		req := httptest.NewRequest(http.MethodPost, authapi.ResealPath, strings.NewReader(body))
		req.Header.Set(identity.Header, signed)
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, req)
		if recorder.Code != want {
			t.Errorf("%d records: got %d %s, want %d", records, recorder.Code, recorder.Body, want)
		}
	}
}

func TestBadBodiesAreRefused(t *testing.T) {
	s := start(t, io.Discard)
	signed, err := newSigner(t, secret).Sign(identity.Identity{Role: identity.Service})
	expect.OK(t, err)
	long := `{"asset_id":"a","broker":"` + strings.Repeat("b", 1<<17) + `"}`
	for _, body := range []string{"", "x", "{}x", `{"colour":1}`, `{"asset_id":1}`, `{}`, strings.Repeat(" ", 1<<17), long} {
		req := httptest.NewRequest(http.MethodPost, authapi.IssueTokensPath, strings.NewReader(body))
		req.Header.Set(identity.Header, signed)
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, req)
		if recorder.Code != http.StatusBadRequest {
			t.Errorf("%.20q: got %d %s, want 400", body, recorder.Code, recorder.Body)
		}
	}
}

func TestAServiceThatIsDownIsUnavailable(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	broken := httpserver.InProcess(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	running := httpserver.InProcess(start(t, io.Discard).Handler())
	signer, stranger := newSigner(t, secret), newSigner(t, bytes.Repeat([]byte("x"), 32))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		client *authapi.Client
		ctx    context.Context
	}{
		"the connection is refused":      {authapi.NewClient(call(t, down.URL), signer, "test"), t.Context()},
		"the service has another secret": {authapi.NewClient(running, stranger, "test"), t.Context()},
		"the service answers 502":        {authapi.NewClient(broken, signer, "test"), t.Context()},
		"the context is canceled":        {authapi.NewClient(call(t, down.URL), signer, "test"), canceled},
	} {
		expect.FaultOf(t, fault.Unavailable, "%s", name)(c.client.VerifyKey(c.ctx, authapi.Hash("broker")))
	}
}

func TestValidateTellsEveryFault(t *testing.T) {
	for _, store := range []string{
		"redis://:hunter2@a/x", "redis+sentinel://:hunter2@a,b", "redis+sentinel://:hunter2@a,b/name/x",
	} {
		err := Config{Store: store, Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler)}.Validate()
		if err == nil || !strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want a malformed store without the password", store, err)
		}
	}
	for _, store := range []string{"redis:", "", "/path"} {
		err := Config{Store: store, Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler)}.Validate()
		expect.Says(t, err, "--store must be", "%q", store)
	}
	good := Config{
		Store: "redis+sentinel://:p@a,b:1/name/2", Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler),
	}
	expect.Err(t, good.Validate(), nil, "%s", good.Store)
	err := Config{
		Store: "mongodb://hunter2", KeysFile: "/nowhere/keys.yaml",
		BaseURL: "https://registry.example/';reboot",
	}.Validate()
	for _, says := range []string{
		`"file:"`, "redis+sentinel://", "secret", "log", "--keys-file", "--base-url",
	} {
		expect.Says(t, err, says, "")
	}
}

// call returns a client of the server at url.
func call(t *testing.T, url string) *upstream.Pool {
	t.Helper()
	pool, err := upstream.New(upstream.Config{
		Name: "authsvc", URLs: []string{url}, Log: slog.New(slog.DiscardHandler), Meter: new(telemetry.Telemetry).Meter(),
	})
	expect.OK(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// TestARemovalOfAFileIsInTheAuditLog tells the service that a file was taken down. The audit log must get an entry
// about this.
func TestARemovalOfAFileIsInTheAuditLog(t *testing.T) {
	s := start(t, io.Discard)
	client := authapi.NewClient(httpserver.InProcess(s.Handler()), newSigner(t, secret), "test")
	request := authapi.NoteRemovalRequest{
		File: strings.Repeat("0a", 16), Reason: "a court has ordered it", SHA256: strings.Repeat("0b", 32), Size: 7,
		Broker: "root", KeyID: "k1", From: "192.0.2.1",
	}
	expect.OK(t, client.NoteRemoval(t.Context(), request))
	for _, lacks := range []func(*authapi.NoteRemovalRequest){
		func(r *authapi.NoteRemovalRequest) { r.Reason = "" }, func(r *authapi.NoteRemovalRequest) { r.File = "" },
		func(r *authapi.NoteRemovalRequest) { r.KeyID = "" },
	} {
		r := request
		lacks(&r)
		expect.Fault(t, client.NoteRemoval(t.Context(), r), fault.Invalid, "%+v", r)
	}
	entries, err := s.admin.Entries(t.Context(), 0, 10)
	expect.FatalIf(t, err != nil || len(entries) != 1, "got the entries %+v, %v; want one", entries, err)
	e, want := entries[0], `{"reason":"a court has ordered it","sha256":"`+request.SHA256+`","size":7}`
	if e.Action != "file.remove" || e.Subject != "file "+request.File || e.Who != "k1 root" || e.From != "192.0.2.1" ||
		string(e.After) != want || e.Time.IsZero() {
		t.Errorf("got the entry %+v with %s, want the removal by k1 root with %s", e, e.After, want)
	}
}

// TestARecoveryIsInTheAuditLog asks for new tokens of an asset. Each call must add an entry with the reason and
// without a token.
// Promises: recovery-reason
func TestARecoveryIsInTheAuditLog(t *testing.T) {
	var log bytes.Buffer
	s := start(t, &log)
	client := authapi.NewClient(httpserver.InProcess(s.Handler()), newSigner(t, secret), "test")
	asset := strings.Repeat("0a", 16)
	issued, err := client.IssueTokens(t.Context(), authapi.IssueTokensRequest{AssetID: asset, Broker: "acme"})
	expect.OK(t, err)
	request := authapi.RecoverTokensRequest{
		AssetID: asset, Sealed: issued.Sealed, Reason: "the token was lost", Broker: "root", KeyID: "k1", From: "192.0.2.1",
	}
	got, err := client.RecoverTokens(t.Context(), request)
	if err != nil || got.Owner != "acme" || got.Token == issued.Token {
		t.Fatalf("got %+v, %v; want the owner acme and another token", got, err)
	}
	for token, want := range map[string]bool{issued.Token: false, got.Token: true} {
		verified, err := client.VerifyToken(t.Context(), authapi.VerifyTokenRequest{
			AssetID: asset, Broker: "acme", TokenHash: authapi.Hash(token), Sealed: got.Sealed,
		})
		expect.ErrorIf(t, err != nil || verified.Valid != want, "got %+v, %v; want Valid %v", verified, err, want)
	}
	request.Reason = ""
	expect.FaultOf(t, fault.Invalid, "without a reason")(client.RecoverTokens(t.Context(), request))
	entries, err := s.admin.Entries(t.Context(), 0, 10)
	expect.FatalIf(t, err != nil || len(entries) != 1, "got the entries %+v, %v; want one", entries, err)
	e := entries[0]
	if e.Action != "asset.recover" || e.Subject != "asset "+asset || e.Who != "k1 root" || e.From != "192.0.2.1" ||
		string(e.After) != `{"broker":"acme","reason":"the token was lost"}` {
		t.Errorf("got the entry %+v with %s, want the recovery by k1 root", e, e.After)
	}
	if text := log.String(); strings.Contains(text, got.Token) || strings.Contains(text, got.Transfer) {
		t.Errorf("got the log %s, want no token in it", text)
	}
}
