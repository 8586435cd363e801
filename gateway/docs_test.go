package gateway

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/gateway/internal/docspage"
	"asset-registry/gateway/internal/openapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

func TestWelcomeNamesTheDocumentation(t *testing.T) {
	s := start(t, nil)
	for _, method := range []string{"GET", "HEAD"} {
		got := fetch(t, s, method, "/")
		const link = `<http://example.com/api/2.5/openapi.json>; rel="service-desc"; type="application/json", ` +
			`<http://example.com/docs>; rel="service-doc"; type="text/html"`
		if got.Code != http.StatusOK || got.Header().Get("Link") != link {
			t.Errorf("%s: got %d, Link %s; want 200, %s", method, got.Code, got.Header().Get("Link"), link)
		}
	}
	const want = `"docs":"http://example.com/docs","name":"asset registry",` +
		`"openapi":"http://example.com/api/2.5/openapi.json"`
	if got := fetch(t, s, "GET", "/").Body.String(); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s in it", got, want)
	}
}

// Promises: docs-policy
func TestHeadersOfTheDocumentation(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"/docs", "/docs/2.4", "/docs/uk"} {
		got := fetch(t, s, "GET", path)
		headers := map[string]string{}
		for _, name := range []string{"Content-Type", "Content-Security-Policy", "Cache-Control", "X-Content-Type-Options",
			"X-Frame-Options", "Cross-Origin-Opener-Policy", "Referrer-Policy"} {
			headers[name] = got.Header().Get(name)
		}
		want := map[string]string{
			"Content-Type": "text/html; charset=utf-8",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
				"connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
			"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "no-referrer",
		}
		if diff := cmp.Diff(want, headers); got.Code != http.StatusOK || diff != "" {
			t.Errorf("%s: got %d, headers (-want +got):\n%s", path, got.Code, diff)
		}
	}
}

// Promises: docs-address
func TestExamplesNameTheListenerAndNoHostOfARequest(t *testing.T) {
	s := start(t, func(c *Config) { c.OwnURL = "http://192.0.2.1:8080" })
	r := httptest.NewRequest("GET", "/docs", nil)
	r.Host = "evil.example"
	r.Header.Set("X-Forwarded-Host", "evil.example")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r) // the page is made for this request, and kept
	page := w.Body.String()
	if !strings.Contains(page, ">http://192.0.2.1:8080<") || strings.Contains(page, "evil.example") {
		t.Error("got a page with another address, want the listener's address only")
	}
}

// linked matches a file that the page loads: a script, an icon or a stylesheet.
var linked = regexp.MustCompile(`<(?:script src|link rel="(?:icon|stylesheet)" href)="(?:\.\./)*\.+([^"]+)"`)

// longest is the maximum number of bytes that a page and its files may have together when compressed.
const longest = 90_000

// Promises: docs-size
func TestAllOfTheDocumentationIsCompressedAndSmall(t *testing.T) {
	s := start(t, nil)
	for _, page := range docsSite(t).Pages() {
		t.Run(page, func(t *testing.T) { compressedAndSmall(t, s, page) })
	}
}

func compressedAndSmall(t *testing.T, s *Server, page string) {
	t.Helper()
	paths := []string{page}
	for _, link := range linked.FindAllStringSubmatch(fetch(t, s, "GET", page).Body.String(), -1) {
		paths = append(paths, link[1])
	}
	expect.FatalIf(t, len(paths) != 4, "got the paths %q, want the page and three files", paths)
	all := 0
	for _, path := range paths {
		plain, zipped := fetch(t, s, "GET", path), fetch(t, s, "GET", path, "Accept-Encoding", "gzip, br, zstd")
		all += zipped.Body.Len()
		expect.Equal(t, zipped.Header().Get("Content-Encoding"), "gzip", "%s: Content-Encoding", path)
		if vary := strings.Join(zipped.Header()["Vary"], ", "); !strings.Contains(vary, "Accept-Encoding") {
			t.Errorf("%s: got Vary %q, want Accept-Encoding in it", path, vary)
		}
		r, err := gzip.NewReader(zipped.Body)
		expect.OK(t, err)
		text, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
			t.Errorf("%s: got %d decoded bytes, %v; want the %d plain bytes", path, len(text), err, plain.Body.Len())
		}
		cache := plain.Header().Get("Cache-Control")
		if forever := strings.Contains(cache, "immutable"); forever != (path != page) {
			t.Errorf("%s: got Cache-Control %q, want immutable in it: %t", path, cache, path != page)
		}
	}
	expect.ErrorIf(t, all > longest, "got %d bytes together, want at most %d", all, longest)
}

// docsSite returns a documentation site whose pages and files have the same paths as at the gateway.
func docsSite(t *testing.T) *docspage.Site {
	t.Helper()
	site, err := docspage.New(docspage.Options{Document: openapi.JSON})
	expect.OK(t, err)
	return site
}

func TestTheDocumentationIsSentOnce(t *testing.T) {
	s := start(t, nil)
	for _, path := range append(docsSite(t).Pages(), docsSite(t).Files()...) {
		for _, encoding := range []string{"identity", "gzip"} {
			got := fetch(t, s, "GET", path, "Accept-Encoding", encoding)
			tag := got.Header().Get("ETag")
			again := fetch(t, s, "GET", path, "Accept-Encoding", encoding, "If-None-Match", tag)
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("ETag") != tag {
				t.Errorf("%s, %s: got %d, %d bytes, ETag %s; want 304, none, %s",
					path, encoding, again.Code, again.Body.Len(), again.Header().Get("ETag"), tag)
			}
			head := fetch(t, s, "HEAD", path, "Accept-Encoding", encoding)
			if head.Code != http.StatusOK || head.Body.Len() > 0 || head.Header().Get("ETag") != tag ||
				head.Header().Get("Content-Length") != got.Header().Get("Content-Length") {
				t.Errorf("%s, %s: HEAD got %d, %d bytes and %v; want 200, none and the headers of GET",
					path, encoding, head.Code, head.Body.Len(), head.Header())
			}
		}
	}
}

func TestRefusalsBelowTheDocumentation(t *testing.T) {
	s := start(t, nil)
	for _, c := range []struct {
		name string
		try
		allow string
	}{
		{"an unknown page", try{"GET", "/docs/9.9", "", "", "", 404, "not_found"}, ""},
		{"an unknown file", try{"GET", "/docs/files/0/docs.js", "", "", "", 404, "not_found"}, ""},
		{"a slash at the end", try{"GET", "/docs/", "", "", "", 404, "not_found"}, ""},
		{"a POST to the page", try{"POST", "/docs", "key", jsonType, "{}", 404, "method_not_allowed"}, "GET, HEAD"},
		{"a POST to the root", try{"POST", "/", "key", jsonType, "{}", 404, "method_not_allowed"}, "GET, HEAD"},
		{"OPTIONS lists the methods", try{"OPTIONS", "/docs", "", "", "", 204, ""}, "GET, HEAD, OPTIONS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.run(t, s)
			expect.Equal(t, got.Header().Get("Allow"), c.allow, "Allow")
			if got.Code == http.StatusNotFound && got.Header().Get("Content-Type") != jsonType {
				t.Errorf("got Content-Type %q, want %q", got.Header().Get("Content-Type"), jsonType)
			}
		})
	}
}

func TestThePageSendsRequestsInASandboxOnly(t *testing.T) {
	sandbox := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), authapi.Hash("broker")) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, `{"broker":"broker","key_id":"k","role":"broker","levels":"1234"}`)
	})
	for _, c := range []struct {
		name string
		auth http.RoundTripper
		want string
	}{
		{"a sandbox", httpserver.InProcess(sandbox), `data-try="true"`},
		{"production", httpserver.InProcess(http.HandlerFunc(known)), `data-try="false"`},
		{"the auth service is down", down{}, `data-try="false"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, func(conf *Config) { conf.Auth = c.auth })
			if page := fetch(t, s, "GET", "/docs").Body.String(); !strings.Contains(page, c.want) {
				t.Errorf("got a page without %s, want it in the page", c.want)
			}
		})
	}
}
