package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// withSite gives a gateway a search service that answers every request with a page.
func withSite(c *Config) {
	c.Search = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("ETag", `W/"tag"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "page ", r.URL.Path, " ", r.Header.Get("Cookie"), r.Header.Get("Authorization"), strings.Repeat(".", 3000))
	})
}

func TestBrowsersGetPagesAndProgramsGetTheWelcome(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	with, without := start(t, withSite), start(t, nil)
	for _, test := range []struct {
		name         string
		s            *Server
		path, accept string
		status       int
		says         string
	}{
		{"a browser", with, "/", browser, 200, "page /"},
		{"a browser that prefers another type", with, "/", "application/json, TEXT/HTML ; q=0.5", 200, "page /"},
		{"curl", with, "/", "*/*", 200, `"versions"`},
		{"no Accept", with, "/", "", 200, `"versions"`},
		{"a program that refuses pages", with, "/", "text/html;q=0, application/json", 200, `"versions"`},
		{"a browser without a site", without, "/", browser, 200, `"versions"`},
		{"a page", with, "/uk/assets/x", "", 200, "page /uk/assets/x"},
		{"an asset in any language", with, "/assets/x", "", 200, "page /assets/x"},
		{"an asset without a site", without, "/assets/x", browser, 404, "not_found"},
		{"a page in English", with, "/en/", "", 200, "page /en/"},
		{"a file", with, "/site/x/site.css", "", 200, "page /site/x/site.css"},
		{"the map", with, "/sitemap.xml", "", 200, "page /sitemap.xml"},
		{"no site", without, "/uk/", browser, 404, "not_found"},
		{"a search", with, "/api/2.5/search", "", 200, "page /"},
		{"no search", without, "/api/2.5/search", "", 404, "not_found"},
		{"an old version", with, "/api/2.4/search", "", 404, "not_found"},
		{"no map", without, "/sitemap.xml", browser, 404, "not_found"},
		{"no such page", with, "/de/", browser, 404, "page /assets/-"},
		{"no such path", with, "/de/", "", 404, "not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := fetch(t, test.s, "GET", test.path, "Accept", test.accept, "Cookie", "SERVER_ID=x", "Authorization", "Bearer key")
			if got.Code != test.status || !strings.HasPrefix(got.Body.String(), test.says) &&
				!strings.Contains(got.Body.String(), test.says) {
				t.Errorf("got %d %.100s, want %d and %s", got.Code, got.Body, test.status, test.says)
			}
			if strings.Contains(got.Body.String(), "SERVER_ID") || strings.Contains(got.Body.String(), "Bearer") {
				t.Error("got the cookie or the key at the search service, want them to end at the gateway")
			}
			expect.Equal(t, got.Header().Get("Set-Cookie"), "", "the cookie")
			vary := strings.Join(got.Header().Values("Vary"), ", ")
			if want := test.s == with && slices.Contains([]string{"a browser", "a browser that prefers another type", "curl", "no Accept",
				"a program that refuses pages", "an asset in any language", "no such page"}, test.name); strings.Contains(vary, "Accept-Language") != want {
				t.Errorf("got Vary %q, want Accept-Language in it: %t", vary, want)
			}
		})
	}
}

func TestPagesAreCompressedAndKeepTheirTags(t *testing.T) {
	s := start(t, withSite)
	got := fetch(t, s, "GET", "/uk/", "Accept-Encoding", "gzip")
	tag := got.Header().Get("ETag")
	if got.Header().Get("Content-Encoding") != "gzip" || got.Body.Len() > 500 || tag != `W/"tag--gzip"` {
		t.Errorf("got %q of %d bytes with the tag %s, want gzip and the tag of it", got.Header().Get("Content-Encoding"),
			got.Body.Len(), tag)
	}
	again := fetch(t, s, "GET", "/uk/", "Accept-Encoding", "gzip", "If-None-Match", tag)
	if again.Code != http.StatusNotModified || again.Header().Get("ETag") != tag {
		t.Errorf("got %d with the tag %s, want 304 with %s", again.Code, again.Header().Get("ETag"), tag)
	}
}
