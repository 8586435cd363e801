package console_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/boltstore"
	"asset-registry/authsvc/internal/console"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// desk has two consoles on one new store.
type desk struct {
	store     *boltstore.Store
	service   administration
	verifier  *apikey.Verifier
	operators *admin.Authenticator
	consoles  []*httptest.Server // consoles that share the store, like several auth services
	assets    records
	now       time.Time
	log       bytes.Buffer
	logger    *slog.Logger
	secrets   keyring.Ring
	sealer    *audit.Sealer
}

// administration has the use cases that the console needs.
type administration struct {
	*admin.Service
	*audit.Checker
}

var root = admin.OfCommand("test")

func newDesk(t *testing.T) *desk {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "tokens.db"), boltstore.Options{})
	expect.OK(t, err)
	t.Cleanup(func() { store.Close() })
	secrets := keyring.Ring{bytes.Repeat([]byte("s"), 32)}
	sealer, err := audit.NewSealer(secrets)
	expect.OK(t, err)
	d := &desk{sealer: sealer, store: store, now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return d.now }
	log := slog.New(slog.NewJSONHandler(&d.log, nil))
	d.logger, d.secrets = log, secrets
	d.service = administration{
		d.on(store), audit.NewChecker(store, admin.Records(store), sealer, clock),
	}
	d.verifier = apikey.NewVerifier(nil, store, clock)
	d.operators = admin.NewAuthenticator(d.verifier, store, log, clock)
	for range 2 {
		c, err := console.New(d.options())
		expect.OK(t, err)
		server := httptest.NewServer(c.Handler())
		t.Cleanup(server.Close)
		d.consoles = append(d.consoles, server)
	}
	return d
}

// on returns the use cases on a store.
func (d *desk) on(store admin.Store) *admin.Service {
	return admin.NewService(store, d.sealer, d.logger, func() time.Time { return d.now }).WithAssets(&d.assets)
}

// options returns the options with which the desk makes its consoles.
func (d *desk) options() console.Options {
	return console.Options{
		Secrets: d.secrets, Admin: d.service.Service, Checker: d.service.Checker,
		Users: d.operators, Ended: d.store, Assets: &d.assets, Log: d.logger, BaseURL: "https://registry.example", Now: func() time.Time { return d.now },
	}
}

func (d *desk) key(t *testing.T, n adminapi.NewKey) (adminapi.Key, string) {
	t.Helper()
	k, secret, err := d.service.CreateKey(t.Context(), root, n)
	expect.OK(t, err)
	return k, secret
}

func settings(name, role string) adminapi.KeySettings {
	return adminapi.KeySettings{Name: name, Role: role}
}

// browser is a client of one console at a time. It keeps cookies and follows redirects.
type browser struct {
	t      *testing.T
	client *http.Client
	base   string
}

// answer is the response after the last redirect, with its body.
type answer struct {
	*http.Response
	text string
}

func (d *desk) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	expect.OK(t, err)
	return &browser{t, &http.Client{Jar: jar}, d.consoles[0].URL}
}

// signedIn returns a browser that is signed in with a new key of a role.
func (d *desk) signedIn(t *testing.T, role string) *browser {
	t.Helper()
	_, secret := d.key(t, adminapi.NewKey{KeySettings: settings("Ольга", role)})
	b := d.browser(t)
	if got := b.post("/console/sign-in", url.Values{"key": {secret}}); got.Request.URL.Path != "/console/" {
		t.Fatalf("sign in: got the page %s, want /console/: %s", got.Request.URL, got.text)
	}
	return b
}

func (b *browser) do(req *http.Request) answer {
	b.t.Helper()
	resp, err := b.client.Do(req)
	expect.OK(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	expect.OK(b.t, err)
	return answer{resp, string(text)}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.base+path, nil)
	expect.OK(b.t, err)
	return b.do(req)
}

func (b *browser) post(path string, form url.Values) answer {
	b.t.Helper()
	return b.postFrom(path, form, http.Header{"Sec-Fetch-Site": {"same-origin"}})
}

func (b *browser) postFrom(path string, form url.Values, from http.Header) answer {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.base+path, strings.NewReader(form.Encode()))
	expect.OK(b.t, err)
	req.Header = from
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// fill opens the form at a path. It returns the given fields with the form's hidden fields.
func (b *browser) fill(path string, fields url.Values) url.Values {
	b.t.Helper()
	opened := b.get(path)
	if opened.StatusCode != 200 {
		b.t.Fatalf("%s: got status %d, want 200: %s", path, opened.StatusCode, opened.text)
	}
	for _, field := range hidden.FindAllStringSubmatch(opened.text, -1) {
		fields.Set(field[1], field[2])
	}
	return fields
}

func (b *browser) submit(path string, fields url.Values) answer {
	b.t.Helper()
	return b.post(path, b.fill(path, fields))
}

// The method `must` fails the test unless the answer is an HTML page that has the status and the texts.
func (a answer) must(t *testing.T, status int, says ...string) {
	t.Helper()
	if kind := a.Header.Get("Content-Type"); a.StatusCode != status || kind != "text/html; charset=utf-8" {
		t.Errorf("%s: got %d %s, want an HTML page with %d: %s", a.Request.URL, a.StatusCode, kind, status, a.text)
	}
	for _, text := range says {
		expect.ErrorIf(t, !strings.Contains(a.text, text), "%s: got %s, want %q in it", a.Request.URL, a.text, text)
	}
}

// keepsToTheLanguage reads the main pages in Ukrainian. No text on them, except for values, is English.
func (d *desk) keepsToTheLanguage(t *testing.T, b *browser) {
	t.Helper()
	list := expect.Get(os.ReadFile("words.txt"))(t)
	english := regexp.MustCompile(`(?m)^([^#|\n]+) \| ([^|\n]+)$`).FindAllStringSubmatch(string(list), -1)
	req := expect.Get(http.NewRequest(http.MethodGet, b.base+"/console/language/uk", nil))(t)
	req.Header.Set("Referer", b.base+"/console/keys?sort=name")
	got := b.do(req)
	got.must(t, 200, `<html lang="uk">`, "Ключі", `href="/console/language/en"`)
	expect.Equal(t, got.Request.URL.RequestURI(), "/console/keys?sort=name", "the page after the choice")
	key, _ := d.key(t, adminapi.NewKey{KeySettings: settings("Keys", "operator")})
	for _, path := range []string{
		"", "keys", "keys?state=any", "keys/" + key.ID, "new-key", "brokers", "new-broker", "audit", "audit/check", "sessions", "webhooks",
		"log", "find?text=x", "find?text=", "nothing", "keys/x", "audit?days=x",
	} {
		text := b.get("/console/" + path).text
		shown := regexp.MustCompile(`(?s)<bdi[^>]*>.*?</bdi>|<script.*?</script>`).ReplaceAllString(text, "")
		for _, pair := range english {
			if strings.Contains(shown, ">"+pair[1]+"<") && pair[1] != pair[2] {
				t.Errorf("/console/%s: got the English text %q", path, pair[1])
			}
		}
		expect.ErrorIf(t, strings.Contains(text, `<span lang="en">`), "/console/%s: got %s, want a Ukrainian fault", path, text)
	}
	b.get("/console/keys/"+key.ID).must(t, 200, "<h1><bdi>Keys</bdi>", "<title>Keys – Консоль")
	b.get("/console/language/pl").must(t, 404)
	b.get("/console/language/en").must(t, 200, `<html lang="en">`)
}
