package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// known answers as an auth service that is ready and knows one key, "key".
func known(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/readyz" {
		return
	}
	body, _ := io.ReadAll(r.Body)
	if !strings.Contains(string(body), authapi.Hash("key")) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w,
			`{"status":"error","errors":[{"location":"header","name":"Authorization","description":"unknown"}]}`)
		return
	}
	io.WriteString(w, `{"broker":"b","key_id":"k","role":"broker","levels":"1234"}`)
}

// assets answers as an asset service that has every asset, except assets with "missing" in their path. The
// answer repeats the method, the path and the body.
func assets(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "missing") {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"status":"error","errors":[{"location":"url","name":"asset_id","description":"Not Found"}]}`)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
}

// down is a transport on which every request fails.
type down struct{}

func (down) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("down") }

// start starts a gateway in this process. Functions of this file stand for the auth service (known) and for
// the asset service (assets). The function `change` may change the configuration; nil changes nothing.
func start(t testing.TB, change func(*Config)) *Server {
	t.Helper()
	c := Config{
		Assets:  http.HandlerFunc(assets),
		Auth:    httpserver.InProcess(http.HandlerFunc(known)),
		Secrets: keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)},
		MaxBody: 100,
		Log:     slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	s, err := New(t.Context(), c)
	expect.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// try is a request with the status and a part of the text that its answer must have.
type try struct {
	method, path, key, kind, body string
	status                        int
	says                          string
}

func (c try) run(t *testing.T, s *Server) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
	if c.key != "" {
		r.SetBasicAuth(c.key, "")
	}
	if c.kind != "" {
		r.Header.Set("Content-Type", c.kind)
	}
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, r)
	if recorder.Code != c.status || !strings.Contains(recorder.Body.String(), c.says) {
		t.Errorf("got %d %s; want %d and %q in it", recorder.Code, recorder.Body, c.status, c.says)
	}
	return recorder
}

const jsonType = "application/json"

func TestRoutes(t *testing.T) {
	s := start(t, nil)
	for _, c := range []struct {
		name string
		try
	}{
		{"welcome", try{"GET", "/", "", "", "", 200, `"versions"`}},
		{"list", try{"GET", "/api/2.5/assets", "", "", "", 200, "GET /api/2.5/assets"}},
		{"an old version", try{"GET", "/api/2.4/assets", "", "", "", 200, "GET /api/2.4/assets"}},
		{"read", try{"GET", "/api/0/assets/there", "", "", "", 200, "GET /api/2.5/assets/there"}},
		{"a GET's body is ignored", try{"GET", "/api/2.5/assets", "", jsonType, "body", 200, "GET /api/2.5/assets"}},
		{"create", try{"POST", "/api/2.5/assets", "key", jsonType, "body", 200, "POST /api/2.5/assets body"}},
		{"change", try{"PATCH", "/api/2.5/assets/there", "key", jsonType, "body", 200, "PATCH /api/2.5/assets/there body"}},
		{"replace", try{"PUT", "/api/0/assets/there", "key", jsonType, "body", 200, "PUT /api/2.5/assets/there body"}},
		{"remove", try{"DELETE", "/api/0/assets/there", "key", "", "", 200, "DELETE /api/2.5/assets/there"}},
		{"own assets", try{"GET", "/api/0/me/assets", "key", "", "", 200, "GET /api/2.5/me/assets"}},
		{"own assets without a key", try{"GET", "/api/2.5/me/assets", "", "", "", 401, "Authorization"}},
		{"an unknown version", try{"GET", "/api/2.6/assets", "", "", "", 404, "not_found"}},
		{"an unknown path", try{"GET", "/api/2.5/asset", "", "", "", 404, "not_found"}},
		{"an unknown method", try{"POST", "/api/2.5/assets/there", "key", "", "", 404, "method_not_allowed"}},
		{"an unknown method of a missing asset", try{"POST", "/api/2.5/assets/missing", "", "", "", 404, "asset_id"}},
		{"an unknown method of a missing asset's ownership",
			try{"GET", "/api/2.5/assets/missing/ownership", "", "", "", 404, "asset_id"}},
		{"an unknown method of an asset's ownership",
			try{"GET", "/api/2.5/assets/there/ownership", "", "", "", 404, "method_not_allowed"}},
		{"an unknown method of a missing part",
			try{"PUT", "/api/2.5/assets/there/items/missing", "", "", "", 404, "method_not_allowed"}},
		{"an unknown method of a missing transfer",
			try{"PATCH", "/api/2.5/transfers/missing", "key", jsonType, "body", 404, "asset_id"}},
		{"an unknown method of a transfer",
			try{"PATCH", "/api/2.5/transfers/there", "key", jsonType, "body", 404, "method_not_allowed"}},
		{"a Content-Type that is not JSON",
			try{"POST", "/api/2.5/assets", "key", "text/plain", "body", 415, "Content-Type"}},
		{"no Content-Type", try{"POST", "/api/2.5/assets", "key", "", "body", 415, "Content-Type"}},
		{"no key", try{"POST", "/api/2.5/assets", "", jsonType, "body", 401, "Authorization"}},
		{"an unknown key", try{"POST", "/api/2.5/assets", "x", jsonType, "body", 401, "Authorization"}},
		{"list parts", try{"GET", "/api/0/assets/there/items", "", "", "", 200, "GET /api/2.5/assets/there/items"}},
		{"add a part", try{"POST", "/api/2.5/assets/there/decisions", "key", jsonType, "body",
			200, "POST /api/2.5/assets/there/decisions body"}},
		{"remove a part", try{"DELETE", "/api/2.5/assets/there/related_processes/x", "key", "", "",
			200, "DELETE /api/2.5/assets/there/related_processes/x"}},
		{"list revisions",
			try{"GET", "/api/0/assets/there/revisions", "key", "", "", 200, "GET /api/2.5/assets/there/revisions"}},
		{"list revisions without a key", try{"GET", "/api/2.5/assets/there/revisions", "", "", "", 401, "Authorization"}},
		{"list revisions of a missing asset",
			try{"GET", "/api/2.5/assets/missing/revisions", "", "", "", 404, "asset_id"}},
		{"a DELETE's body is ignored", try{"DELETE", "/api/2.5/assets/there/related_processes/x", "key", "text/plain", "body",
			200, "DELETE /api/2.5/assets/there/related_processes/x "}},
		{"change a missing part without a key",
			try{"PATCH", "/api/2.5/assets/there/items/missing", "", jsonType, "body", 401, "Authorization"}},
		{"change a missing part with another Content-Type",
			try{"PUT", "/api/2.5/assets/there/documents/missing", "key", "text/plain", "body", 415, "Content-Type"}},
		{"another method of a part of a missing asset",
			try{"PUT", "/api/2.5/assets/missing/items/there", "", "", "", 404, "asset_id"}},
		{"an item cannot be replaced",
			try{"PUT", "/api/2.5/assets/there/items/x", "key", jsonType, "body", 404, "method_not_allowed"}},
		{"a path below a part", try{"GET", "/api/2.5/assets/there/items/x/unit", "", "", "", 404, "not_found"}},
		{"an unknown kind of part", try{"GET", "/api/2.5/assets/there/unknown", "", "", "", 404, "not_found"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

// TestToLookForAnObjectCounts sends methods that a route does not have. If the path names an object, the gateway
// asks the asset service whether the object exists. This must count as a read. For other paths, the gateway must ask
// nothing and count nothing.
func TestToLookForAnObjectCounts(t *testing.T) {
	asked := 0
	s := start(t, func(c *Config) {
		c.Limits = Limits{AddressRead: new(int64(1))}
		c.Assets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			assets(w, r)
		})
	})
	for _, free := range []try{
		{"OPTIONS", "/api/2.5/assets/there", "", "", "", 204, ""},
		{"DELETE", "/api/2.5/assets", "", "", "", 404, "method_not_allowed"},
		{"POST", "/api/2.5/me", "", "", "", 404, "method_not_allowed"},
	} {
		for range 10 {
			free.run(t, s)
		}
	}
	expect.Equal(t, asked, 0, "requests to the asset service")
	for range 10 { // each new second admits one more request
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, httptest.NewRequest("POST", "/api/2.5/assets/there", nil))
		if recorder.Code == http.StatusTooManyRequests {
			return
		}
		if allow := recorder.Header().Get("Allow"); recorder.Code != 404 || !strings.Contains(allow, "PATCH") {
			t.Errorf("got %d with Allow %q, want 404 with the route's methods", recorder.Code, allow)
		}
	}
	t.Error("got 10 requests admitted, want a refusal at one read a second")
}

func TestUnknownPathsAreCounted(t *testing.T) {
	s := start(t, func(c *Config) { c.Limits = Limits{AddressRead: new(int64(1))} })
	for range 10 { // each new second admits one more request
		if got := fetch(t, s, "GET", "/nowhere/"+strings.Repeat("a", 1000)); got.Code == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("got 10 requests for unknown paths admitted, want a refusal at one a second")
}

func TestWithoutTheAuthServiceReadsGoOnAndWritesWait(t *testing.T) {
	s := start(t, func(c *Config) { c.Auth = down{} })
	for _, c := range []struct {
		name string
		try
	}{
		{"a reader", try{"GET", "/api/2.5/assets/there", "", "", "", 200, "GET"}},
		{"a reader with a key", try{"GET", "/api/2.5/assets/there", "key", "", "", 200, "GET"}},
		{"a write", try{"POST", "/api/2.5/assets", "key", jsonType, "body", 503, "repeat"}},
		{"a write without a key", try{"POST", "/api/2.5/assets", "", jsonType, "body", 401, "Authorization"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.run(t, s); c.status == 503 && got.Header().Get("Retry-After") == "" {
				t.Error("got no Retry-After, want one")
			}
		})
	}
}

// TestOnlyTheEdgeMakesSeeds sends each request with a forged seed header. The asset service must get the
// gateway's seeds, or none.
func TestOnlyTheEdgeMakesSeeds(t *testing.T) {
	var got string
	s := start(t, func(c *Config) {
		c.Assets = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = r.Header.Get(httpserver.SeedHeader)
		})
	})
	for _, c := range []struct {
		name, method, path, key string
		seeded                  bool
	}{
		{"POST with an Idempotency-Key", "POST", "/api/2.5/assets", "k", true},
		{"POST with an empty Idempotency-Key", "POST", "/api/2.5/assets", "", false},
		{"PATCH with an Idempotency-Key", "PATCH", "/api/2.5/assets/there", "k", false},
		{"GET with an Idempotency-Key", "GET", "/api/2.5/assets/there", "k", false},
		{"POST with an empty Idempotency-Key, after others", "POST", "/api/2.5/assets", "", false},
		{"POST in an old version with an Idempotency-Key", "POST", "/api/2.4/assets", "k", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, connection := range []string{"", httpserver.SeedHeader} {
				r := httptest.NewRequest(c.method, c.path, strings.NewReader("body"))
				r.SetBasicAuth("key", "")
				r.Header.Set("Content-Type", jsonType)
				r.Header.Set("Idempotency-Key", c.key)
				r.Header.Set(httpserver.SeedHeader, "claimed")
				r.Header.Set("Connection", connection)
				s.Handler().ServeHTTP(httptest.NewRecorder(), r)
				if len(got) == 64 != c.seeded || !c.seeded && got != "" {
					t.Errorf("with Connection %q: got the seed %q, want 64 characters: %t, else none", connection, got, c.seeded)
				}
			}
		})
	}
}

func TestRequestsAreNamed(t *testing.T) {
	s := start(t, nil)
	for _, c := range []struct {
		sent string
		kept bool
	}{{"mine-1", true}, {"", false}, {strings.Repeat("x", 65), false}, {"a b", false}, {"a\"b", false}} {
		r := httptest.NewRequest("GET", "/api/2.5/assets", nil)
		r.Header.Set(httpserver.RequestIDHeader, c.sent)
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, r)
		if got := recorder.Header().Get(httpserver.RequestIDHeader); (got == c.sent) != c.kept || got == "" {
			t.Errorf("sent the request id %q: got %q, want it kept: %t", c.sent, got, c.kept)
		}
	}
}

func TestValidateTellsEveryFault(t *testing.T) {
	err := Config{
		AssetsURLs: []string{"x"}, AuthURLs: []string{"ftp://x"},
		Limits: Limits{Redis: "x"},
	}.Validate()
	for _, says := range []string{
		"--assets-url", "--auth-url", "secret", "--limits-redis", "log",
	} {
		expect.Says(t, err, says, "")
	}
}

func BenchmarkRead(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 3000)
	s, err := New(b.Context(), Config{
		Assets:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }),
		Auth:    httpserver.InProcess(http.HandlerFunc(known)),
		Secrets: keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)},
		Limits:  Limits{AddressRead: new(int64(1 << 40)), KeyRead: new(int64(1 << 40))},
		Log:     slog.New(slog.NewJSONHandler(io.Discard, nil)),
	})
	expect.OK(b, err)
	for _, c := range []struct{ name, key string }{{"anonymous", ""}, {"keyed", "key"}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("GET", "/api/2.5/assets/there", nil)
				if c.key != "" {
					r.SetBasicAuth(c.key, "")
				}
				s.Handler().ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
