package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// asMirror configures the gateway of a mirror whose data are 7.9 s old.
func asMirror(c *Config) {
	c.Auth, c.ServerID = nil, "origin"
	c.Mirror = &Mirror{Origin: "https://registry.example", Age: func() time.Duration { return 7900 * time.Millisecond }}
}

// Promises: mirror-421, mirror-age
func TestAMirrorAnswersReadingsOnly(t *testing.T) {
	s := start(t, asMirror)
	for _, path := range []string{"/data/assets.csv", "/data/x/assets.csv"} {
		if got := askFor(s, path, "192.0.2.1:1", ""); got.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s: got %d, want 421, because a mirror has no whole copies", path, got.Code)
		}
	}
	for _, route := range routes.All() {
		if route.AtSearch { // this mirror has no search service
			continue
		}
		in := strings.NewReplacer(":id", "there", ":part", "x", ":transfer", "x", ":number", "1", ":file", "x")
		path := "/api/2.5" + in.Replace(route.Pattern)
		want := http.StatusOK
		if route.Class == routes.Write || route.Key {
			want = http.StatusMisdirectedRequest
		}
		for _, key := range []string{"key", "wrong", ""} {
			r := httptest.NewRequest(route.Method, path, strings.NewReader("body"))
			if key != "" {
				r.SetBasicAuth(key, "")
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != want || w.Header().Get("Age") != "7" {
				t.Errorf("%s %s with the key %q: got %d and the Age %q, want %d and 7", route.Method, path, key, w.Code,
					w.Header().Get("Age"), want)
			}
			link := w.Header().Get("Link")
			if isNamed := link == `<https://registry.example>; rel="original"`; isNamed != (want != http.StatusOK) {
				t.Errorf("%s %s: got the Link %q, want the origin with 421 only", route.Method, path, link)
			}
			if want != http.StatusOK && !strings.Contains(w.Body.String(), "https://registry.example") {
				t.Errorf("%s %s: got %s, want the address of the origin", route.Method, path, w.Body)
			}
		}
	}
}

func TestAMirrorLocksNobodyOutForWrongKeys(t *testing.T) {
	s := start(t, func(c *Config) { asMirror(c); c.Limits = c.Limits.OrDefault(false) })
	for n := range 200 {
		r := httptest.NewRequest(http.MethodGet, "/api/2.5/assets", nil)
		r.SetBasicAuth("wrong", "")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		isLockedOut := strings.Contains(w.Body.String(), "Authorization")
		if w.Code != http.StatusOK && w.Code != http.StatusTooManyRequests || isLockedOut {
			t.Fatalf("request %d: got %d %s, want no refusal for its key", n, w.Code, w.Body)
		}
	}
}

func TestAMirrorSaysWhereItsDataAreFrom(t *testing.T) {
	for _, c := range []struct {
		name, path string
		change     func(*Config)
		want       []string
	}{
		{"a mirror's readiness", "/readyz", asMirror, []string{`"behindSeconds":7.9`, `"origin":"https://registry.example"`}},
		{"a mirror that cannot follow", "/readyz", func(c *Config) {
			asMirror(c)
			c.Mirror.Fault = func() string { return "The disk is full." }
		}, []string{`"fault":"The disk is full."`, `"status":"ok"`}},
		{"a mirror's welcome", "/", asMirror, []string{`"origin":"https://registry.example"`}},
		{"a registry's welcome", "/", nil, nil},
		{"a registry's readiness", "/readyz", nil, nil},
	} {
		w := httptest.NewRecorder()
		start(t, c.change).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		for _, want := range c.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: got %s, want %s in it", c.name, w.Body, want)
			}
		}
		if c.want == nil && (strings.Contains(w.Body.String(), `"origin"`) || w.Header().Get("Age") != "") {
			t.Errorf("%s: got %s and the Age %q, want nothing of a mirror", c.name, w.Body, w.Header().Get("Age"))
		}
	}
}

func TestAMirrorIsConfiguredWhole(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no age":           func(c *Config) { c.Mirror.Age = nil },
		"no server id":     func(c *Config) { c.ServerID = "" },
		"an auth service":  func(c *Config) { c.AuthURLs = []string{"http://127.0.0.1:1"} },
		"a faulty address": func(c *Config) { c.Mirror.Origin = "https://registry.example/>" },
		"no asset service": func(c *Config) { c.Assets = nil; c.AssetsURLs = []string{"http://127.0.0.1:1"} },
	} {
		c := start(t, asMirror).config
		mirror := *c.Mirror
		c.Mirror = &mirror
		expect.OK(t, c.Validate())
		if change(&c); c.Validate() == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}
