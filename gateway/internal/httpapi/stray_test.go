package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestAddressesAsPeopleTypeThem asks for paths without a route, as a browser and as a program. A browser must get a
// page, or one of the addresses that are written out in package routes. A program must get the JSON of any unknown path.
func TestAddressesAsPeopleTypeThem(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "asked for "+r.URL.Path)
	})
	const html, page, icon = "application/xml, text/html;q=0.9", "asked for /assets/-", "asked for /uk/favicon.ico"
	for _, c := range []struct{ method, target, accept, to, body string }{
		{"GET", "/ua", html, "/uk/", ""},
		{"GET", "/UA/?q=%D0%BB&x=//host", html, "/uk/?q=%D0%BB&x=//host", ""},
		{"HEAD", "/Uk/", html, "/uk/", ""},
		{"GET", "/EN", html, "/en/", ""},
		{"GET", "/search/", html, "/", ""},
		{"GET", "/assets", html, "/", ""},
		{"GET", "/data/", html, "/data", ""},
		{"GET", "/docs/", html, "/docs", ""},
		{"GET", "/docs/uk/", html, "/docs/uk", ""},
		{"GET", "/favicon.ico", "image/avif, */*", "", icon},
		{"GET", "/favicon.ico", html, "", icon},
		{"GET", "/favicon.ico", "*/*", "", "not_found"},
		{"GET", "/nothing", html, "", page},
		{"GET", "//ua/", html, "", page},
		{"GET", "/ua//", html, "", page},
		{"GET", "//host/", html, "", page},
		{"GET", `/\host`, html, "", page},
		{"GET", "/%2Fhost/", html, "", page},
		{"GET", "/ua/%0d%0aX:%20y", html, "", page},
		{"GET", "/ua", "text/html;q=0", "", "not_found"},
		{"GET", "/ua", "*/*", "", "not_found"},
		{"GET", "/ua", "", "", "not_found"},
		{"POST", "/ua", html, "", "not_found"},
		{"GET", "/api", html, "", "not_found"},
		{"GET", "/api/ua", html, "", "not_found"},
		{"GET", "/health", html, "", "not_found"},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.RequestURI, r.URL = c.target, expect.Get(r.URL.Parse("http://registry.example"+c.target))(t)
		r.Header.Set("Accept", c.accept)
		_, engine := open(t, service, nil) // a client may send one request a minute
		got := httptest.NewRecorder()
		engine.ServeHTTP(got, r)
		status := http.StatusTeapot
		switch {
		case c.to != "":
			status = http.StatusFound
		case c.body == "not_found":
			status = http.StatusNotFound
		}
		isRight := got.Code == status && got.Header().Get("Location") == c.to && strings.Contains(got.Body.String(), c.body)
		if vary := strings.Join(got.Header()["Vary"], ", "); !isRight || !strings.Contains(vary+",", "Accept,") {
			t.Errorf("%s %s for %q: got %d to %q, %q and Vary %q; want %d to %q and %q", c.method, c.target, c.accept,
				got.Code, got.Header().Get("Location"), got.Body, vary, status, c.to, c.body)
		}
	}
}

// TestAHeadOfAPageThatIsMissing asks by HEAD for a page that the site answers with 404. The head must be the site's.
func TestAHeadOfAPageThatIsMissing(t *testing.T) {
	_, engine := open(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
	}), nil)
	r, got := httptest.NewRequest("HEAD", "/nothing", nil), httptest.NewRecorder()
	r.Header.Set("Accept", "text/html")
	engine.ServeHTTP(got, r)
	expect.Equal(t, got.Header().Get("Content-Type"), "text/html", "the type")
}
