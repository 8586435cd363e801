package gateway

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// basic is what a good key is sent as.
const basic = "Basic a2V5Og=="

// tagged is an asset service whose readings are large, and have a tag.
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
	io.WriteString(w, `{"data":"`+strings.Repeat("x", 3000)+`"}`)
}

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

func TestReadingsAreCompressedForWhoTakesIt(t *testing.T) {
	const path = "/api/2.5/assets/there"
	for _, at := range []struct {
		place string
		s     *Server
	}{
		{"in process", start(t, func(c *Config) { c.Assets = http.HandlerFunc(tagged) })},
		{"on the wire", startOnWire(t, http.HandlerFunc(tagged), http.HandlerFunc(known), nil)},
	} {
		for _, c := range []struct {
			accept string
			want   string
		}{{"", ""}, {"gzip", "gzip"}, {"zstd", "zstd"}, {"gzip, zstd", "zstd"}, {"br", ""}, {"gzip;q=0", ""}, {"identity", ""}} {
			got := fetch(t, at.s, "GET", path, "Accept-Encoding", c.accept)
			if encoding := got.Header().Get("Content-Encoding"); encoding != c.want {
				t.Errorf("%s, Accept-Encoding %q: got %q, want %q", at.place, c.accept, encoding, c.want)
			}
			var body io.Reader = got.Body
			tag := `"1-2.5"`
			switch c.want {
			case "gzip":
				reader, err := gzip.NewReader(got.Body)
				if err != nil {
					t.Fatal(err)
				}
				body, tag = reader, `"1-2.5--gzip"`
			case "zstd":
				reader, err := zstd.NewReader(got.Body)
				if err != nil {
					t.Fatal(err)
				}
				body, tag = reader, `"1-2.5--zstd"`
			}
			text, err := io.ReadAll(body)
			if err != nil || len(text) != 3011 {
				t.Errorf("%s, Accept-Encoding %q: %d bytes, %v", at.place, c.accept, len(text), err)
			}
			if got := got.Header().Get("ETag"); got != tag {
				t.Errorf("%s, Accept-Encoding %q: the tag is %s, want %s", at.place, c.accept, got, tag)
			}
			if vary := strings.Join(got.Header()["Vary"], ", "); !strings.Contains(vary, "Accept-Encoding") || !strings.Contains(vary, "Authorization") {
				t.Errorf("Vary: %s", vary)
			}
			if again := fetch(t, at.s, "GET", path, "Accept-Encoding", c.accept, "If-None-Match", tag); again.Code != http.StatusNotModified || again.Header().Get("ETag") != tag {
				t.Errorf("%s: with its own tag %s, the answer is %d %v", at.place, tag, again.Code, again.Header())
			}
		}

		if got := fetch(t, at.s, "POST", "/api/2.5/assets", "Accept-Encoding", "gzip", "Content-Type", "application/json", "Authorization", basic); got.Code != 201 || got.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: a write is answered with %d %v", at.place, got.Code, got.Header())
		}
	}
}

func TestPagesOfOtherOriginsAreAllowed(t *testing.T) {
	for _, c := range []struct {
		name         string
		origins      []string
		origin, want string
	}{
		{"all", []string{"*"}, "https://a.example", "*"},
		{"one of them", []string{"https://a.example", "https://b.example"}, "https://b.example", "https://b.example"},
		{"another", []string{"https://a.example"}, "https://b.example", ""},
		{"none", nil, "https://a.example", ""},
		{"not a page", []string{"*"}, "", ""},
		{"nearly right", []string{"https://a.example"}, "https://a.example.evil.example", ""},
	} {
		s := start(t, func(conf *Config) { conf.Settings.CORSOrigins = c.origins })
		preflight := fetch(t, s, "OPTIONS", "/api/2.5/assets/there", "Origin", c.origin, "Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "authorization")
		if got := preflight.Header().Get("Access-Control-Allow-Origin"); got != c.want {
			t.Errorf("%s: the preflight allows %q, want %q", c.name, got, c.want)
		}
		if allowed := strings.Contains(preflight.Header().Get("Access-Control-Allow-Headers"), "Authorization"); preflight.Code != http.StatusNoContent || preflight.Header().Get("X-Content-Type-Options") != "nosniff" || allowed != (c.want != "") {
			t.Errorf("%s: the preflight is answered with %d %v", c.name, preflight.Code, preflight.Header())
		}
		for _, path := range []string{"/api/2.5/assets/there", "/nowhere"} { // a page may read errors, too
			got := fetch(t, s, "GET", path, "Origin", c.origin)
			if exposed := strings.Contains(got.Header().Get("Access-Control-Expose-Headers"), "ETag"); got.Header().Get("Access-Control-Allow-Origin") != c.want || exposed != (c.want != "") {
				t.Errorf("%s: got %v", c.name, got.Header())
			}
		}
	}
}

func TestOptionsTellsWhatARouteTakes(t *testing.T) {
	s := start(t, nil)
	if got := fetch(t, s, "OPTIONS", "/api/2.5/assets"); got.Code != http.StatusNoContent || !strings.Contains(got.Header().Get("Allow"), "POST") || !strings.Contains(got.Header().Get("Allow"), "OPTIONS") {
		t.Errorf("got %d, Allow: %s", got.Code, got.Header().Get("Allow"))
	}
	if got := fetch(t, s, "OPTIONS", "/nowhere"); got.Code != http.StatusNotFound {
		t.Errorf("got %d", got.Code)
	}
}

func TestOldVersionsSaySo(t *testing.T) {
	s := start(t, func(c *Config) {
		c.Settings = Settings{Deprecated: map[string]string{"2.4": "2026-01-31"}, Sunset: map[string]string{"2.4": "2027-01-31"}}
	})
	old, current := fetch(t, s, "GET", "/api/2.4/assets/there").Header(), fetch(t, s, "GET", "/api/2.5/assets/there").Header()
	if old.Get("Deprecation") != "@1769817600" || old.Get("Sunset") != "Sun, 31 Jan 2027 00:00:00 GMT" {
		t.Errorf("got %v", old)
	}
	if current.Get("Deprecation")+current.Get("Sunset") != "" {
		t.Errorf("got %v", current)
	}
	for _, ages := range []Settings{{Deprecated: map[string]string{"1.0": "2026-01-31"}}, {Sunset: map[string]string{"2.4": "soon"}}} {
		if ages.validate() == nil {
			t.Errorf("%v is valid", ages)
		}
	}
}

func TestWhoMattersLeastIsRefusedFirst(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	s := start(t, func(c *Config) {
		c.Settings.MaxConcurrent = 10
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
		t.Errorf("with 6 of 10: %d %d %d", a, k, w)
	}
	stay()
	if a, k, w := anonymous(), keyed(), write(); a != 503 || k != 200 || w != 201 {
		t.Errorf("with 7 of 10: %d %d %d", a, k, w)
	}
	stay("Authorization", basic)
	if a, k, w := anonymous(), keyed(), write(); a != 503 || k != 503 || w != 201 {
		t.Errorf("with 8 of 10: %d %d %d", a, k, w)
	}
	refused := fetch(t, s, "GET", "/api/2.5/assets/there")
	if refused.Header().Get("Retry-After") == "" || !strings.Contains(refused.Body.String(), `"status":"error"`) {
		t.Errorf("got %v %s", refused.Header(), refused.Body)
	}
	if got := fetch(t, s, "GET", "/readyz"); got.Code != 200 {
		t.Errorf("health is answered with %d", got.Code)
	}
	close(leave)
	for s.current.Current() != 0 {
	}
	if a := anonymous(); a != 200 {
		t.Errorf("with none: %d", a)
	}
}
