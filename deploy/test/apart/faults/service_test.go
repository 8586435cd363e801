package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

const (
	storeTimeout = 1500 * time.Millisecond
	lease        = time.Second
	timeout      = 5 * time.Second         // how long the service may take for a request
	patience     = timeout + 2*time.Second // how long a client waits for the answer
)

var secrets = keyring.Ring{bytes.Repeat([]byte("faults"), 6)}

// service is an asset service over HTTP, with its store behind a proxy.
type service struct {
	url    string
	signer *identity.Signer
	client *http.Client
}

func start(t *testing.T, store string) *service {
	t.Helper()
	return startWith(t, assetsvc.Config{Store: store})
}

// startWith starts an asset service with the store and the switches of the configuration c.
func startWith(t *testing.T, c assetsvc.Config) *service {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	auth, err := authsvc.New(t.Context(), authsvc.Config{Store: "file:" + filepath.Join(t.TempDir(), "tokens.db"),
		Secrets: secrets, Log: log})
	expect.OK(t, err)
	t.Cleanup(func() { auth.Close() })
	c.StoreTimeout, c.StoreLease, c.Timeout = storeTimeout, lease, timeout
	c.Auth, c.Secrets, c.Log = httpserver.InProcess(auth.Handler()), secrets, slog.New(slog.DiscardHandler)
	assets, err := assetsvc.New(t.Context(), c)
	expect.OK(t, err)
	t.Cleanup(func() { assets.Close() })
	signer, err := identity.NewSigner(secrets, time.Now)
	expect.OK(t, err)
	server := httptest.NewServer(assets.Handler())
	t.Cleanup(server.Close)
	return &service{url: server.URL, signer: signer, client: &http.Client{Timeout: patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 50}}}
}

// call sends a request and returns the status. The answer must come in time. It must be a success, or a 503 with
// Retry-After.
func (s *service) call(t *testing.T, method, path, token, body string, into any) int {
	t.Helper()
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader([]byte(body)))
	expect.OK(t, err)
	signed, err := s.signer.Sign(identity.Identity{Broker: "broker", KeyID: "faults", Role: identity.Broker,
		Levels: "1234"})
	expect.OK(t, err)
	req.Header.Set(identity.Header, signed)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Access-Token", token)
	resp, err := s.client.Do(req)
	if err != nil {
		t.Errorf("%s %s: got no answer in time, want one: %v", method, path, err)
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return 0
	}
	switch {
	case resp.StatusCode < 300:
		if err := json.Unmarshal(text, into); err != nil {
			t.Errorf("%s %s: %v: %s", method, path, err, text)
		}
	case resp.StatusCode == http.StatusServiceUnavailable:
		var refusal struct {
			Status string
			Errors []struct{ Location, Name, Description string }
		}
		if err := json.Unmarshal(text, &refusal); err != nil || refusal.Status != "error" || len(refusal.Errors) == 0 ||
			resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: got 503 with %q and Retry-After %q, want an error body and a time", method, path, text,
				resp.Header.Get("Retry-After"))
		}
	default:
		t.Errorf("%s %s: got %d %s, want a success or 503", method, path, resp.StatusCode, text)
	}
	return resp.StatusCode
}

// answer is the body of an answer with one asset.
type answer struct {
	Access struct{ Token string }
	Data   struct{ ID, Title, Description, DateModified string }
}

// page is a page of the feed.
type page struct {
	Data []struct{ ID, Title, Description, DateModified string }
	Next struct{ Path string } `json:"next_page"`
}

const assetText = `{"data":{"assetType":"bounce","title":%q,"description":"new","items":[{"description":"о",` +
	`"classification":{"scheme":"CAV-PS","id":"06111000-3","description":"з"},"address":{"countryName":"У"},` +
	`"unit":{"code":"c"},"quantity":1,"registrationDetails":{"status":"unknown"}}],` +
	`"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1"}],` +
	`"assetCustodian":{"name":"Ф","identifier":{"scheme":"UA-EDR","id":"1"},"address":{"countryName":"У"},` +
	`"contactPoint":{"name":"Д","telephone":"1"}}}}`

// ledger counts the answers to all callers, and keeps the acknowledged states.
type ledger struct {
	*service
	mu     sync.Mutex
	assets []*promise
	made   int // number of titles and descriptions so far; this number makes each of them unique
	oks    int // number of successes
	nos    int // number of failures
}

// promise is the last acknowledged state of one asset.
type promise struct {
	mu          sync.Mutex // held during a change
	id, token   string
	description string
	modified    string   // dateModified
	tried       []string // the descriptions of later changes that did not succeed
}

func (l *ledger) count(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status < 300 {
		l.oks++
	} else {
		l.nos++
	}
}

func (l *ledger) name() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	return fmt.Sprintf("name %d", l.made)
}

// create creates an asset, and publishes it with a first change.
func (l *ledger) create(t *testing.T) int {
	t.Helper()
	var got answer
	status := l.call(t, "POST", "/api/2.5/assets", "", fmt.Sprintf(assetText, l.name()), &got)
	l.count(status)
	if status == http.StatusCreated {
		l.mu.Lock()
		l.assets = append(l.assets, &promise{id: got.Data.ID, token: got.Access.Token, description: "new",
			modified: got.Data.DateModified})
		l.mu.Unlock()
	}
	return status
}

// change changes an asset and returns the status.
func (l *ledger) change(t *testing.T, p *promise) int {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	description := l.name()
	var got answer
	status := l.call(t, "PATCH", "/api/2.5/assets/"+p.id, p.token,
		fmt.Sprintf(`{"data":{"description":%q,"status":"pending"}}`, description), &got)
	l.count(status)
	if status != http.StatusOK {
		p.tried = append(p.tried, description)
		return status
	}
	p.description, p.modified, p.tried = description, got.Data.DateModified, nil
	return status
}

// check compares the assets and the feed with the recorded answers, after the fault has ended.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	at := map[string]string{}
	for _, p := range l.assets {
		var got answer
		if status := l.call(t, "GET", "/api/2.5/assets/"+p.id, "", "", &got); status != http.StatusOK {
			t.Fatalf("asset %s: got %d, want 200", p.id, status)
		}
		found := got.Data.Description == p.description && got.Data.DateModified == p.modified
		for _, tried := range p.tried {
			found = found || got.Data.Description == tried && got.Data.DateModified > p.modified
		}
		if !found {
			t.Errorf("asset %s: got %q of %s, want %q of %s or one of %q", p.id, got.Data.Description,
				got.Data.DateModified, p.description, p.modified, p.tried)
		}
		if got.Data.Description != "new" {
			at[p.id] = got.Data.DateModified
		}
	}
	seen, titles := map[string]string{}, map[string]bool{}
	for path := "/api/2.5/assets?limit=50&opt_fields=title"; ; {
		var p page
		if status := l.call(t, "GET", path, "", "", &p); status != http.StatusOK {
			t.Fatalf("feed: got %d, want 200", status)
		}
		if len(p.Data) == 0 {
			break
		}
		for _, e := range p.Data {
			if _, twice := seen[e.ID]; twice || titles[e.Title] {
				t.Errorf("asset %s, %q: got two entries in the feed, want one", e.ID, e.Title)
			}
			seen[e.ID], titles[e.Title] = e.DateModified, true
		}
		path = p.Next.Path
	}
	for id, modified := range at {
		expect.Equal(t, seen[id], modified, "asset %s: in the feed", id)
	}
}
