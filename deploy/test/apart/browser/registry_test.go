package browser

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/filesvc"
	"asset-registry/gateway"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

var secrets = keyring.Ring{bytes.Repeat([]byte("console!"), 4)}

// registry is a complete registry with the console and a public log.
type registry struct {
	auth    *authsvc.Server
	console string // "http://127.0.0.1:PORT/console"
	port    string
	api     string
	client  *authapi.Client
	assets  http.Handler
	files   http.Handler
	gateway http.Handler
	toAuth  http.RoundTripper
	logKey  string // public key of the log
}

func startRegistry(t *testing.T) *registry {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	r := &registry{console: "http://" + listener.Addr().String() + "/console"}
	_, r.port, err = net.SplitHostPort(listener.Addr().String())
	expect.OK(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.gateway.ServeHTTP(w, req) // gateway is set before a test sends a request
	}))
	t.Cleanup(server.Close)
	r.auth, err = authsvc.New(t.Context(), authsvc.Config{BaseURL: server.URL, Store: "file:" + filepath.Join(t.TempDir(), "tokens.db"),
		Secrets: secrets, Sandbox: true, Admin: listener, Log: log,
		Assets: httpserver.InProcess(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			r.assets.ServeHTTP(w, req) // assets is set before a test opens a page
		}))})
	expect.OK(t, err)
	t.Cleanup(func() { expect.Try(t, r.auth.Close()) })
	toAuth := httpserver.InProcess(r.auth.Handler())
	logKey, err := translog.GenerateKey(translog.ForLog, "registry.example/log/1a2b3c4d")
	expect.OK(t, err)
	assets, err := assetsvc.New(t.Context(), assetsvc.Config{Store: "file:" + filepath.Join(t.TempDir(), "assets.db"),
		Auth: toAuth, Secrets: secrets, LogKeys: []translog.Key{logKey}, Zone: time.UTC, AssetTypes: []string{"bounce"},
		Files: httpserver.InProcess(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			r.files.ServeHTTP(w, req) // files is set before a test adds a document
		})), BaseURL: server.URL,
		Log: log, Webhooks: assetsvc.Webhooks{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, HTTP: true}})
	expect.OK(t, err)
	closeAtEnd(t, assets.Close)
	r.assets = assets.Handler()
	dir := t.TempDir()
	files, err := filesvc.New(t.Context(), filesvc.Config{
		Store: "file:" + filepath.Join(dir, "files.db"), Bytes: filepath.Join(dir, "files"), Secrets: secrets, Log: log,
		Assets: httpserver.InProcess(r.assets), BaseURL: server.URL, Draw: filesvc.DrawCommand(),
	})
	expect.OK(t, err)
	closeAtEnd(t, files.Close)
	r.files = files.Handler()
	edge, err := gateway.New(t.Context(), gateway.Config{Auth: toAuth, Assets: r.assets, Files: r.files, Secrets: secrets, Log: log})
	expect.OK(t, err)
	t.Cleanup(func() { expect.Try(t, edge.Close()) })
	r.gateway, r.toAuth, r.logKey = edge.Handler(), toAuth, logKey.Public().String()
	r.api = server.URL + "/api/2.5"
	signer, err := identity.NewSigner(secrets, time.Now)
	expect.OK(t, err)
	r.client = authapi.NewClient(httpserver.InProcess(r.auth.Handler()), signer, "console")
	return r
}

// operator creates an operator's key and returns it.
func (r *registry) operator(t *testing.T) string {
	t.Helper()
	key, err := r.auth.AdminKey(t.Context(), "Ольга")
	expect.OK(t, err)
	return key
}

// known sends GET /me with a key, and returns the status.
func (r *registry) known(t *testing.T, key string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.api+"/me", nil)
	expect.OK(t, err)
	req.SetBasicAuth(key, "")
	resp, err := http.DefaultClient.Do(req)
	expect.OK(t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

// mustKnow waits up to a minute until the function `known` returns the expected status. A change of a key reaches
// the gateway a little later.
func (r *registry) mustKnow(t *testing.T, key string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for got := r.known(t, key); got != want; got = r.known(t, key) {
		select {
		case <-ctx.Done():
			t.Fatalf("got %d from the gateway for a key, want %d", got, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// use reports to the auth service that a key was used on each of the last 85 days.
func (r *registry) use(t *testing.T, id string) {
	t.Helper()
	now := time.Now().UTC()
	for day := range 85 {
		report := authapi.ReportUsageRequest{Uses: []authapi.Use{{KeyID: id, Secret: 1,
			Addr: netip.MustParseAddr("192.0.2.17"), Micros: now.UnixMicro()}}}
		at := now.AddDate(0, 0, -day)
		busy := int64(40 + day*37%60)
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			busy /= 6
		}
		for _, c := range []struct {
			class string
			share int64
		}{{"list", 22}, {"read", 9}, {"write", 3}} {
			report.Counts = append(report.Counts, authapi.Count{KeyID: id, Day: at.Format(time.DateOnly),
				Class: c.class, Requests: busy * c.share})
		}
		expect.OK(t, r.client.ReportUsage(t.Context(), report))
	}
}
