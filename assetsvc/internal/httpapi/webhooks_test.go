package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// hooked is a service with webhooks. The clock of its webhooks and of its store stands still.
type hooked struct {
	service
	store  *boltstore.Store
	memory Memory
	assets *registry.Registry
	seals  webhook.Seals
	now    time.Time
}

var (
	broker1  = identity.Identity{Broker: "b1", KeyID: "k1", Role: identity.Broker, Levels: "3"}
	broker2  = identity.Identity{Broker: "b2", KeyID: "k2", Role: identity.Broker, Levels: "3"}
	testOnly = identity.Identity{Broker: "b1", KeyID: "k3", Role: identity.Broker, Levels: "3t"}
	admin    = identity.Identity{Broker: "b1", KeyID: "k4", Role: identity.Administrator}
	helper   = identity.Identity{Broker: "authsvc", Role: identity.Service}
	stranger = identity.Identity{Broker: "b3", KeyID: "k5", Role: identity.Concierge}
)

// newHooked returns a service whose clock is at 14:00 in its zone. Its feed has a real asset that was changed 90
// seconds ago, and a test asset that was changed 30 seconds ago.
func newHooked(t *testing.T) *hooked {
	t.Helper()
	s := &hooked{service: service{signer: newSigner(t)}, memory: NewMemory(1 << 30),
		now: time.Date(2026, 11, 20, 11, 58, 30, 0, time.UTC)}
	clock := func() time.Time { return s.now }
	s.store = newStore(t, clock)
	for _, r := range []registry.Record{
		{ID: lowID, Listed: true, Body: []byte(activeAsset)},
		{ID: highID, Listed: true, Test: true, Body: []byte(activeAsset)},
	} {
		expect.Get(s.store.Create(t.Context(), r))(t)
		s.now = s.now.Add(time.Minute)
	}
	s.now = s.now.Add(-30 * time.Second)
	var err error
	s.seals, err = webhook.NewSeals(keyring.Ring{bytes.Repeat([]byte("k"), keyring.MinLength)})
	expect.OK(t, err)
	s.assets = registry.New(s.store, tokens{}, asset.Rules{Zone: zone}, clock)
	api := New(s.assets, zone, 1<<20, s.memory)
	api.ServeWebhooks(webhook.NewService(webhook.ServiceConfig{
		Store: s.store, Feed: NewPositions(s.assets), Seals: s.seals, Now: clock,
		CheckURL: func(url string) error { return webhook.CheckURL(url, webhook.Policy{}) },
	}))
	engine := httpserver.NewEngine(httpserver.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Minute})
	api.Route(engine, s.signer)
	s.handler = engine
	return s
}

// call is a request of a caller, with the expected answer.
type call struct {
	by                 identity.Identity
	method, path, body string
	status             int
	says               string // substring of the answer's body
}

// call sends a request with additional headers, and checks the answer.
func (s *hooked) call(t *testing.T, headers http.Header, c call) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.answerTo(t, c.by, w, headers, exchange{method: c.method, path: c.path, body: c.body})
	if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
		t.Errorf("%s %s %s by %s of %q: got %d %s; want %d and %q", c.method, c.path, c.body, c.by.Role, c.by.Broker,
			w.Code, w.Body, c.status, c.says)
	}
	expect.Equal(t, w.Header().Get("Cache-Control"), "no-store", "%s %s, Cache-Control", c.method, c.path)
	return w
}

const (
	allHooks = "/api/2.5/webhooks"
	hookData = `{"data":{"url":"https://hook.example/"}}`
)

// created creates a webhook and returns its path.
func (s *hooked) created(t *testing.T, by identity.Identity) string {
	t.Helper()
	answer := s.call(t, nil, call{by, "POST", allHooks, hookData, 201, `"access"`})
	return strings.TrimPrefix(answer.Header().Get("Location"), "https://registry.example")
}

// idOf returns the id of the webhook at a path.
func idOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// save saves progress of a webhook, like the sender does.
func (s *hooked) save(t *testing.T, path string, p webhook.Progress) {
	t.Helper()
	e, err1 := s.store.Endpoint(t.Context(), idOf(path))
	term, _, err2 := s.store.Lead(t.Context(), "test", s.now, s.now.Add(time.Hour))
	stale, err3 := s.store.Save(t.Context(), term.Number,
		[]webhook.Step{{ID: e.ID, Generation: e.Generation, Progress: p}})
	if err := errors.Join(err1, err2, err3); err != nil || len(stale) > 0 {
		t.Fatalf("got %v and stale %v, want the progress saved", err, stale)
	}
}

var (
	randomID     = regexp.MustCompile(`"[0-9a-f]{32}"`)
	randomPublic = regexp.MustCompile(`"whpk_[A-Za-z0-9+/]{43}="`)
	randomSecret = regexp.MustCompile(`"whsec_[A-Za-z0-9+/]{43}="`)
)

// masked returns an answer with words in place of its random values.
func masked(answer string) string {
	answer = randomID.ReplaceAllString(answer, `"ID"`)
	return randomSecret.ReplaceAllString(randomPublic.ReplaceAllString(answer, `"PUBLIC"`), `"SECRET"`)
}

// TestACreatedWebhookIsShown creates webhooks, and reads them. Only the answer to the creation has the secret.
// Promises: hook-secret
func TestACreatedWebhookIsShown(t *testing.T) {
	const (
		begin = `{"id":"ID","dateCreated":"2026-11-20T14:00:00.000000+02:00","broker":"b1",`
		end   = `,"failures":0,"publicKey":"PUBLIC"}`
		url   = `"url":"https://hook.example/",`
		now   = `"offset":"2026-11-20T13:59:30.000000+02:00","behind":0`
		early = `"offset":"2026-11-20T12:00:00.000000+02:00",`
		since = `"offset":"2026-11-20T10:00:00Z"`
	)
	for _, c := range []struct {
		name, version string
		by            identity.Identity
		sent, want    string
	}{
		{"an address", "2.5", broker1, url[:len(url)-1],
			begin + url + `"version":"2.5","mode":"","opt_fields":"","state":"unverified",` + now + end},
		{"an older version", "2.4", broker1, url[:len(url)-1],
			begin + url + `"version":"2.4","mode":"","opt_fields":"","state":"unverified",` + now + end},
		{"an administrator's", "2.5", admin, url[:len(url)-1], begin + `"byAdministrator":true,` + url +
			`"version":"2.5","mode":"","opt_fields":"","state":"unverified",` + now + end},
		{"whole test assets, paused", "2.5", testOnly, url + `"mode":"test","opt_fields":"*","state":"disabled",` + since,
			begin + url + `"version":"2.5","mode":"test","opt_fields":"*","state":"disabled","reason":"paused",` + early +
				`"behind":30` + end},
		{"filters", "2.5", broker1, url + `"filters":{"owner":"b1","status":["active","pending"]},` + since,
			begin + url + `"version":"2.5","mode":"","opt_fields":"","filters":{"status":["active","pending"],"owner":["b1"]},` +
				`"state":"unverified",` + early + `"behind":90` + end},
		{"real and test assets", "2.5", broker1, url + `"mode":"_all_",` + since,
			begin + url + `"version":"2.5","mode":"_all_","opt_fields":"","state":"unverified",` + early + `"behind":90` + end},
		{"an offset that is to come", "2.5", broker1, url + `"offset":"2027-01-01T00:00:00Z"`,
			begin + url + `"version":"2.5","mode":"","opt_fields":"","state":"unverified",` + now + end},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newHooked(t)
			all := "/api/" + c.version + "/webhooks"
			created := s.call(t, nil, call{c.by, "POST", all, `{"data":{` + c.sent + `}}`, 201, ""})
			want := `{"access":{"secret":"SECRET"},"data":` + c.want + `}`
			expect.NoDiff(t, cmp.Diff(want, masked(created.Body.String())), "the answer to the creation differs")
			place := created.Header().Get("Location")
			path, found := strings.CutPrefix(place, "https://registry.example"+all+"/")
			if !found || !strings.Contains(created.Body.String(), `"id":"`+path+`"`) {
				t.Fatalf("got the Location %s, want the address of the webhook", place)
			}
			read := s.call(t, nil, call{c.by, "GET", all + "/" + path, "", 200, ""})
			expect.NoDiff(t, cmp.Diff(`{"data":`+c.want+`}`, masked(read.Body.String())), "the webhook differs")
			listed := s.call(t, nil, call{c.by, "GET", all, "", 200, ""})
			expect.NoDiff(t, cmp.Diff(`{"data":[`+c.want+`]}`, masked(listed.Body.String())), "the list differs")
			for _, r := range []struct {
				path string
				size int
			}{{all, listed.Body.Len()}, {all + "/" + path, read.Body.Len()}} {
				head := s.call(t, nil, call{c.by, "HEAD", r.path, "", 200, ""})
				if got := head.Header().Get("Content-Length"); got != strconv.Itoa(r.size) || head.Body.Len() > 0 {
					t.Errorf("HEAD %s: got the size %s and %d bytes, want %d and none", r.path, got, head.Body.Len(), r.size)
				}
			}
		})
	}
}

// TestAWebhookShowsItsProgress saves progress like the sender does, and reads the webhook.
func TestAWebhookShowsItsProgress(t *testing.T) {
	s := newHooked(t)
	at := s.created(t, broker1)
	position := s.now.Add(-time.Hour).UnixMicro()
	const place = `"offset":"2026-11-20T13:00:00.000000+02:00","behind":90,`
	for _, c := range []struct {
		name     string
		progress webhook.Progress
		want     string
	}{
		{"a success", webhook.Progress{Position: position, State: webhook.Active, Verified: true, Succeeded: s.now},
			`"state":"active",` + place + `"failures":0,"succeeded":"2026-11-20T14:00:00.000000+02:00",`},
		{"failures", webhook.Progress{Position: position, State: webhook.Active, Verified: true, Failures: 3,
			FailedAt: s.now, LastError: "failed: 503", Next: s.now.Add(time.Minute)},
			`"state":"active",` + place + `"failures":3,"lastError":"failed: 503","next":"2026-11-20T14:01:00.000000+02:00",`},
		{"a failure after a success", webhook.Progress{Position: position, State: webhook.Disabled, Reason: webhook.Gone,
			Verified: true, Failures: 1, FailedAt: s.now, LastError: "failed", Next: s.now, Succeeded: s.now.Add(-time.Second)},
			`"state":"disabled","reason":"gone",` + place + `"failures":1,"lastError":"failed",` +
				`"next":"2026-11-20T14:00:00.000000+02:00","succeeded":"2026-11-20T13:59:59.000000+02:00",`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.save(t, at, c.progress)
			s.call(t, nil, call{broker1, "GET", at, "", 200, `"opt_fields":"",` + c.want + `"publicKey":"whpk_`})
		})
	}
}

// TestADamagedWebhookIsShown reads a webhook whose filters and secret cannot be read. The answer must have no
// filters and no public key.
func TestADamagedWebhookIsShown(t *testing.T) {
	s := newHooked(t)
	e := webhook.Endpoint{ID: lowID, Broker: "b1", Created: s.now, Filters: `{"owner":`, Seal: "another.seal",
		Progress: webhook.Progress{State: webhook.Unverified, Position: s.now.UnixMicro()}}
	expect.OK(t, s.store.Put(t.Context(), e))
	answer := s.call(t, nil, call{broker1, "GET", allHooks + "/" + lowID, "", 200,
		`"opt_fields":"","state":"unverified","offset":"2026-11-20T14:00:00.000000+02:00","behind":0,"failures":0}}`})
	if text := answer.Body.String(); strings.Contains(text, "filters") || strings.Contains(text, "publicKey") {
		t.Errorf("got %s, want no filters and no public key", text)
	}
}

// TestWebhooksAreListedInPages lists 101 webhooks: 26 of b1, and 25 of each of three other brokers.
func TestWebhooksAreListedInPages(t *testing.T) {
	s := newHooked(t)
	seal := expect.Get(s.seals.New())(t)
	id := func(n int) string { return fmt.Sprintf("%032x", n) }
	for n := range webhook.MaxPage + 1 {
		e := webhook.Endpoint{ID: id(n), Broker: fmt.Sprintf("b%d", n%4+1), Seal: seal}
		expect.OK(t, s.store.Put(t.Context(), e))
	}
	page := func(start, step, most int) (ids []string) {
		for n := start; len(ids) < most; n += step {
			ids = append(ids, id(n))
		}
		return ids
	}
	for _, c := range []struct {
		name, query string
		by          identity.Identity
		want        []string
		next        string // query of the link to the next page; "": the page is the last
	}{
		{"a broker's first page", "?limit=2", broker1, page(0, 4, 2), "after=" + id(4) + "&limit=2"},
		{"a broker's second page", "?limit=2&after=" + id(4), broker1, page(8, 4, 2), "after=" + id(12) + "&limit=2"},
		{"more than a page has", "?limit=1000", admin, page(0, 1, 100), "after=" + id(99) + "&limit=1000"},
		{"a page of a broker, for an administrator", "?broker=b2&limit=3", admin, page(1, 4, 3),
			"after=" + id(9) + "&broker=b2&limit=3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			type link struct{ After, Path, URI string }
			var got struct {
				Data []struct{ ID string }
				Next *link `json:"next_page"`
			}
			answer := s.call(t, nil, call{c.by, "GET", allHooks + c.query, "", 200, ""})
			expect.OK(t, json.Unmarshal(answer.Body.Bytes(), &got))
			ids := []string{}
			for _, w := range got.Data {
				ids = append(ids, w.ID)
			}
			expect.NoDiff(t, cmp.Diff(c.want, ids), "the page differs")
			var next *link
			if c.next != "" {
				path := allHooks + "?" + c.next
				next = &link{c.want[len(c.want)-1], path, "https://registry.example" + path}
			}
			expect.NoDiff(t, cmp.Diff(next, got.Next), "the link to the next page differs")
		})
	}
}
