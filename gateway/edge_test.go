package gateway

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/testing/expect"
)

// basic is the Authorization header of the key "key".
const basic = "Basic a2V5Og=="

// tagged is the handler of an asset service whose answers are large and have the ETag "1-2.5".
func tagged(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", `"1-2.5"`)
	if strings.Contains(r.Header.Get("If-None-Match"), `"1-2.5"`) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	text := `{"data":"` + strings.Repeat("x", 3000) + `"}`
	if r.Method != http.MethodHead || r.URL.RawQuery == "" { // a HEAD with a query gets no length
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	if r.Method != http.MethodHead {
		io.WriteString(w, text)
	}
}

// fetch sends a request with the body {}. The argument `header` lists names and values in turn.
func fetch(t *testing.T, s *Server, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, r)
	return recorder
}

// Promises: writes-plain
func TestReadingsAreCompressedForWhoTakesIt(t *testing.T) {
	const path = "/api/2.5/assets/there"
	for _, at := range []struct {
		place string
		s     *Server
	}{
		{"in process", start(t, func(c *Config) { c.Assets = http.HandlerFunc(tagged) })},
		{"on the wire", startOnWire(t, http.HandlerFunc(tagged), http.HandlerFunc(known), nil)},
	} {
		for _, c := range []struct{ accept, want string }{
			{"", ""}, {"gzip", "gzip"}, {"zstd", "zstd"}, {"gzip, zstd", "zstd"}, {"br", ""}, {"gzip;q=0", ""}, {"identity", ""},
		} {
			got := fetch(t, at.s, "GET", path, "Accept-Encoding", c.accept)
			expect.Equal(t, got.Header().Get("Content-Encoding"), c.want, "%s, Accept-Encoding %q, Content-Encoding",
				at.place, c.accept)
			var body io.Reader = got.Body
			tag := `"1-2.5"`
			switch c.want {
			case "gzip":
				reader, err := gzip.NewReader(got.Body)
				expect.OK(t, err)
				body, tag = reader, `"1-2.5--gzip"`
			case "zstd":
				reader, err := zstd.NewReader(got.Body)
				expect.OK(t, err)
				body, tag = reader, `"1-2.5--zstd"`
			}
			text, err := io.ReadAll(body)
			if err != nil || len(text) != 3011 {
				t.Errorf("%s, Accept-Encoding %q: got %d bytes, %v; want 3011", at.place, c.accept, len(text), err)
			}
			expect.Equal(t, got.Header().Get("ETag"), tag, "%s, Accept-Encoding %q: ETag", at.place, c.accept)
			vary := strings.Join(got.Header()["Vary"], ", ")
			if !strings.Contains(vary, "Accept-Encoding") || !strings.Contains(vary, "Authorization") {
				t.Errorf("%s, Accept-Encoding %q: got Vary %q, want Accept-Encoding and Authorization in it",
					at.place, c.accept, vary)
			}
			for _, query := range []string{"", "?opt_pretty=1"} {
				head := fetch(t, at.s, "HEAD", path+query, "Accept-Encoding", c.accept)
				length := head.Header().Get("Content-Length")
				for _, h := range []http.Header{got.Header(), head.Header()} {
					h.Del("Content-Length") // HEAD may omit the Content-Length of a compressed or long answer
					h.Del("X-Request-ID")
					h.Del("Date")
				}
				if diff := cmp.Diff(got.Header(), head.Header()); diff != "" || head.Body.Len() > 0 || c.want != "" && length != "" {
					t.Errorf("%s, HEAD%s, Accept-Encoding %q: got %d bytes, Content-Length %q; want no body, and no length if compressed; "+
						"headers of GET and HEAD differ:\n%s", at.place, query, c.accept, head.Body.Len(), length, diff)
				}
			}
			again := fetch(t, at.s, "GET", path, "Accept-Encoding", c.accept, "If-None-Match", tag)
			if again.Code != http.StatusNotModified || again.Header().Get("ETag") != tag {
				t.Errorf("%s, If-None-Match %s: got %d %v, want 304 with that ETag", at.place, tag, again.Code, again.Header())
			}
		}

		got := fetch(t, at.s, "POST", "/api/2.5/assets",
			"Accept-Encoding", "gzip", "Content-Type", "application/json", "Authorization", basic)
		if got.Code != 201 || got.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s, POST: got %d %v, want 201 without compression", at.place, got.Code, got.Header())
		}
	}
}

// Promises: cors, cors-requests
func TestPagesOfOtherOriginsAreAllowed(t *testing.T) {
	for _, c := range []struct {
		name         string
		origins      []string
		origin, want string
	}{
		{"every origin is allowed", []string{"*"}, "https://a.example", "*"},
		{"an origin of the list", []string{"https://a.example", "https://b.example"},
			"https://b.example", "https://b.example"},
		{"an origin outside the list", []string{"https://a.example"}, "https://b.example", ""},
		{"an empty list", nil, "https://a.example", ""},
		{"no Origin header", []string{"*"}, "", ""},
		{"an origin that only starts like one", []string{"https://a.example"}, "https://a.example.evil.example", ""},
	} {
		s := start(t, func(conf *Config) { conf.Settings.CORSOrigins = c.origins })
		preflight := fetch(t, s, "OPTIONS", "/api/2.5/assets/there", "Origin", c.origin,
			"Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "authorization")
		header := preflight.Header()
		expect.Equal(t, header.Get("Access-Control-Allow-Origin"), c.want,
			"%s: preflight, Access-Control-Allow-Origin", c.name)
		if c.want != "" {
			got := header.Get("Access-Control-Allow-Methods") + "; " + header.Get("Access-Control-Allow-Headers")
			const want = "GET, HEAD, POST, PATCH, PUT, DELETE; Accept, Authorization, Content-Type, Idempotency-Key, " +
				"If-Match, If-None-Match, If-Range, Last-Event-ID, Prefer, Range, Registry-Reference, X-Access-Token, " +
				"X-Request-ID"
			expect.Equal(t, got, want, "%s: preflight: the methods and headers", c.name)
		}
		allowed := strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization")
		if preflight.Code != http.StatusNoContent || header.Get("X-Content-Type-Options") != "nosniff" ||
			allowed != (c.want != "") {
			t.Errorf("%s: preflight: got %d %v, want 204, nosniff, Authorization allowed: %t",
				c.name, preflight.Code, header, c.want != "")
		}
		for _, path := range []string{"/api/2.5/assets/there", "/nowhere"} { // a page must be able to read errors too
			got := fetch(t, s, "GET", path, "Origin", c.origin)
			exposed := strings.Contains(got.Header().Get("Access-Control-Expose-Headers"), "ETag")
			if got.Header().Get("Access-Control-Allow-Origin") != c.want || exposed != (c.want != "") {
				t.Errorf("%s: %s: got %v, want Access-Control-Allow-Origin %q, ETag exposed: %t",
					c.name, path, got.Header(), c.want, c.want != "")
			}
		}
	}
}

func TestOptionsTellsWhatARouteTakes(t *testing.T) {
	s := start(t, nil)
	got := fetch(t, s, "OPTIONS", "/api/2.5/assets")
	allow := got.Header().Get("Allow")
	if got.Code != http.StatusNoContent || !strings.Contains(allow, "POST") || !strings.Contains(allow, "OPTIONS") {
		t.Errorf("got %d, Allow %q; want 204 with POST and OPTIONS", got.Code, allow)
	}
	expect.Equal(t, fetch(t, s, "OPTIONS", "/nowhere").Code, http.StatusNotFound, "unknown path")
}

func TestOptionsOfTheServerHasTheHeadersOfEveryAnswer(t *testing.T) {
	s := start(t, func(c *Config) { c.Settings.CORSOrigins = []string{"*"} })
	got := fetch(t, s, "OPTIONS", "*", "Origin", "https://a.example")
	h := got.Header()
	if got.Code != http.StatusNoContent || h.Get("X-Request-Id") == "" || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("got %d %v, want 204 with the headers of every answer", got.Code, h)
	}
}

func TestAnEmptyHostIsRefused(t *testing.T) {
	s := start(t, func(c *Config) { c.Settings.CORSOrigins = []string{"*"} })
	for _, c := range []struct {
		name, host    string
		minor, status int
	}{
		{"an empty Host", "", 1, 400}, {"a Host", "a", 1, 200}, {"none in HTTP/1.0", "", 0, 200},
	} {
		r := httptest.NewRequest("GET", "/api/2.5/assets/there", nil)
		r.Host, r.ProtoMinor = c.host, c.minor
		r.Header.Set("Origin", "https://a.example")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %d %v, want %d with headers of CORS", c.name, w.Code, w.Header(), c.status)
		}
	}
}

// TestLinksHaveTheAddressThatATrustedProxyTells asks for the welcome answer. Its links must begin with the
// configured address. Without a configured address, they must begin with the address that a trusted proxy reports,
// otherwise with the address in the request.
func TestLinksHaveTheAddressThatATrustedProxyTells(t *testing.T) {
	proxies := clientaddr.Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		name, baseURL, peer, proto, host, want string
	}{
		{"a trusted proxy", "", "10.0.0.1:5", "https", "registry.example", "https://registry.example"},
		{"the right-most of several", "", "10.0.0.1:5", "http, https", "evil.example, registry.example:8443",
			"https://registry.example:8443"},
		{"an IPv6 address", "", "10.0.0.1:5", "HTTPS", "[2001:db8::1]:8", "https://[2001:db8::1]:8"},
		{"the scheme alone", "", "10.0.0.1:5", "https", "", "https://direct.example"},
		{"another peer", "", "192.0.2.1:5", "https", "registry.example", "http://direct.example"},
		{"a setting", "https://set.example", "10.0.0.1:5", "http", "registry.example", "https://set.example"},
		{"a host with a path", "", "10.0.0.1:5", "https", "registry.example/evil", "https://direct.example"},
		{"a host with a user", "", "10.0.0.1:5", "https", "a@evil.example", "https://direct.example"},
		{"a host with a quote", "", "10.0.0.1:5", "https", `registry.example">`, "https://direct.example"},
		{"an unknown scheme", "", "10.0.0.1:5", "javascript", "registry.example", "http://registry.example"},
	} {
		s := start(t, func(conf *Config) { conf.BaseURL, conf.TrustedProxies = c.baseURL, proxies })
		r := httptest.NewRequest("GET", "/", nil)
		r.Host, r.RemoteAddr = "direct.example", c.peer
		r.Header["X-Forwarded-Proto"], r.Header["X-Forwarded-Host"] = []string{c.proto}, []string{"first.example", c.host}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		var got struct{ Assets string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Assets != c.want+"/api/2.5/assets" {
			t.Errorf("%s: got the link %q, %v; want %s", c.name, got.Assets, err, c.want)
		}
	}
}

// TestAPageLocksNobodyElseOut sends wrong keys from a web page. Then it sends right keys. They must be accepted if
// they come from a different page or a different address.
func TestAPageLocksNobodyElseOut(t *testing.T) {
	s := start(t, func(c *Config) {
		c.Limits.Table = ratelimit.Table{{Name: "address-failed", By: ratelimit.ByAddress,
			Costs: map[ratelimit.Class]int64{ratelimit.Failed: 1}, Windows: map[string]int64{"1m": 3}}}
	})
	const evil, here, elsewhere = "https://evil.example", "192.0.2.1:5", "198.51.100.1:5"
	me := func(authorization, origin, addr string) int {
		r := httptest.NewRequest("GET", "/api/2.5/me", nil)
		r.RemoteAddr = addr
		r.Header.Set("Authorization", authorization)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	for range 4 {
		me("Basic d3Jvbmc6", evil, here)
	}
	for _, c := range []struct {
		origin, addr string
		status       int
	}{
		{evil, here, 429}, {"https://good.example", here, 200}, {"null", here, 200}, {"", here, 200}, {evil, elsewhere, 200},
	} {
		expect.Equal(t, me(basic, c.origin, c.addr), c.status, "the right key from %q at %s", c.origin, c.addr)
	}
}

func TestOldVersionsSaySo(t *testing.T) {
	s := start(t, func(c *Config) {
		c.Settings = Settings{
			Deprecated: map[string]string{"2.4": "2026-01-31"}, Sunset: map[string]string{"2.4": "2027-01-31"},
		}
	})
	old := fetch(t, s, "GET", "/api/2.4/assets/there").Header()
	current := fetch(t, s, "GET", "/api/2.5/assets/there").Header()
	if old.Get("Deprecation") != "@1769817600" || old.Get("Sunset") != "Sun, 31 Jan 2027 00:00:00 GMT" {
		t.Errorf("version 2.4: got %v, want the Deprecation and Sunset of the settings", old)
	}
	if current.Get("Deprecation")+current.Get("Sunset") != "" {
		t.Errorf("version 2.5: got %v, want neither Deprecation nor Sunset", current)
	}
	for _, wrong := range []Settings{
		{Deprecated: map[string]string{"1.0": "2026-01-31"}}, {Sunset: map[string]string{"2.4": "soon"}},
	} {
		expect.ErrorIf(t, wrong.Validate() == nil, "%v: got no error, want one", wrong)
	}
}

func TestWhoMattersLeastIsRefusedFirst(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	s := start(t, func(c *Config) {
		c.Settings.MaxConcurrent = 20 // 10 for the asset service
		c.Assets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/slow") {
				arrived <- struct{}{}
				<-leave
			}
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusCreated)
			}
		})
	})
	stay := func(header ...string) {
		go fetch(t, s, "GET", "/api/2.5/assets/slow", header...)
		<-arrived
	}
	anonymous := func() int { return fetch(t, s, "GET", "/api/2.5/assets/there").Code }
	keyed := func() int { return fetch(t, s, "GET", "/api/2.5/assets/there", "Authorization", basic).Code }
	write := func() int {
		return fetch(t, s, "POST", "/api/2.5/assets", "Authorization", basic, "Content-Type", "application/json").Code
	}
	for range 6 {
		stay()
	}
	if a, k, w := anonymous(), keyed(), write(); a != 200 || k != 200 || w != 201 {
		t.Errorf("6 of 10 under way: got %d, %d, %d; want 200, 200, 201", a, k, w)
	}
	stay()
	if a, k, w := anonymous(), keyed(), write(); a != 503 || k != 200 || w != 201 {
		t.Errorf("7 of 10 under way: got %d, %d, %d; want 503, 200, 201", a, k, w)
	}
	stay("Authorization", basic)
	if a, k, w := anonymous(), keyed(), write(); a != 503 || k != 503 || w != 201 {
		t.Errorf("8 of 10 under way: got %d, %d, %d; want 503, 503, 201", a, k, w)
	}
	refused := fetch(t, s, "GET", "/api/2.5/assets/there")
	if refused.Header().Get("Retry-After") == "" || !strings.Contains(refused.Body.String(), `"status":"error"`) {
		t.Errorf("got %v %s, want Retry-After and an error body", refused.Header(), refused.Body)
	}
	expect.Equal(t, fetch(t, s, "GET", "/readyz").Code, 200, "/readyz")
	close(leave)
	for s.current.Current() != 0 {
	}
	expect.Equal(t, anonymous(), 200, "none under way")
}
