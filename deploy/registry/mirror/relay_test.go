package mirror

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

const known, unknown = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"

// stage returns a relay between an origin and a copy that has one asset.
func stage(t *testing.T, origin http.HandlerFunc) *relay {
	t.Helper()
	server := httptest.NewServer(origin)
	t.Cleanup(server.Close)
	of := expect.Get(url.Parse(server.URL + "/below"))(t)
	here := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	return newRelay(of, server.Client().Transport, time.Minute, slog.New(slog.DiscardHandler)).
		before(here, func(id string) (bool, error) { return id == known, nil })
}

func get(r *relay, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.Header.Set("Authorization", "secret")
	req.Header.Set("X-Access-Token", "secret")
	req.Header.Set("If-None-Match", `"tag"`)
	req.Header.Set("If-Match", "*")
	r.ServeHTTP(w, req)
	return w
}

func TestOnlyTheOriginIsAskedForWhatTheCopyLacks(t *testing.T) {
	r := stage(t, func(w http.ResponseWriter, r *http.Request) {
		for name, want := range map[string]string{"Authorization": "", "X-Access-Token": "", "If-None-Match": `"tag"`} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: got %s %q, want %q", r.URL, name, got, want)
			}
		}
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "there "+r.URL.RequestURI())
	})
	for path, want := range map[string]string{
		"/api/2.5/assets":                             "here",
		"/api/2.5/assets/" + known:                    "here",
		"/api/2.5/assets/" + known + "/items/1":       "here",
		"/api/2.5/assets/x":                           "here",
		"/api/2.5/snapshot":                           "here",
		"/log/checkpoint":                             "here",
		"/feed/2.5/live":                              "here",
		"/readyz":                                     "here",
		"/api/2.5/assets/" + known + "/proof?a=1":     "there /below/api/2.5/assets/" + known + "/proof?a=1",
		"/api/2.4/assets/" + unknown + "?opt_pretty=": "there /below/api/2.4/assets/" + unknown + "?opt_pretty=",
		"/api/2.5/assets/" + unknown + "/items":       "there /below/api/2.5/assets/" + unknown + "/items",
		"/api/2.5/transfers/x":                        "there /below/api/2.5/transfers/x",
	} {
		got := get(r, path)
		relayed := strings.HasPrefix(want, "there")
		if got.Code != 200 || got.Body.String() != want || (got.Header().Get("ETag") == `"x"`) != relayed ||
			got.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %q %v, want %q", path, got.Code, got.Body, got.Header(), want)
		}
	}
}

func TestTroublesOfTheOriginAreUnavailable(t *testing.T) {
	for status, want := range map[int]int{200: 200, 206: 503, 302: 503, 304: 304, 400: 400, 404: 404, 412: 412, 416: 503,
		401: 503, 421: 503, 429: 503, 500: 503, 502: 503, 503: 503} {
		r := stage(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(status)
		})
		expect.Equal(t, get(r, "/api/2.5/transfers/x").Code, want, "the origin answers %d", status)
		if status == 304 || status == 412 { // answers to a condition
			want = 503
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/2.5/transfers/x", nil))
		expect.Equal(t, w.Code, want, "the origin answers %d without a condition", status)
	}
	r := stage(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	got := get(r, "/api/2.5/transfers/x")
	isMirrors := strings.Contains(got.Body.String(), `"name":"mirror"`)
	expect.ErrorIf(t, got.Code != 503 || !isMirrors || got.Header().Get("Retry-After") == "",
		"no answer: got %d %s, want 503 url/mirror", got.Code, got.Body)
}

func TestTheOriginHasMostOfTheTimeOfAReading(t *testing.T) {
	config := Config{Timeout: 10 * time.Second}
	expect.Equal(t, config.relayWithin(), 8*time.Second, "without a time of readings")
	config.Settings.ReadTimeout = 5 * time.Second
	expect.Equal(t, config.relayWithin(), 4*time.Second, "")
	r := stage(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	r.within = time.Millisecond
	if got := get(r, "/api/2.5/transfers/x"); got.Code != 503 || !strings.Contains(got.Body.String(), `"name":"mirror"`) {
		t.Errorf("no answer in time: got %d %s, want 503 url/mirror", got.Code, got.Body)
	}
}

// Promises: mirror-relay
func TestABusyRelayRefuses(t *testing.T) {
	expect.Equal(t, relayed, 16, "requests to the origin at once")
	r := stage(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") })
	for range relayed {
		r.turns <- struct{}{}
	}
	expect.Equal(t, get(r, "/api/2.5/transfers/x").Code, 503, "")
	<-r.turns
	expect.Equal(t, get(r, "/api/2.5/transfers/x").Code, 200, "")
}

// TestARelayedAnswerIsBounded has an origin whose answer is larger than the limit mostRelayed. The client must see
// that the answer is incomplete.
func TestARelayedAnswerIsBounded(t *testing.T) {
	part := make([]byte, 1<<20)
	r := stage(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for sent := 0; sent <= mostRelayed; sent += len(part) {
			_, _ = w.Write(part)
		}
	})
	w := httptest.NewRecorder()
	defer func() {
		if got := recover(); got != http.ErrAbortHandler || w.Body.Len() > mostRelayed {
			t.Errorf("got %d bytes and the end %v, want at most %d and a broken connection", w.Body.Len(), got, mostRelayed)
		}
	}()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/api/2.5/transfers/x", nil))
}

// TestARelayedAnswerIsJSONThatTheMirrorVouchesFor has an origin whose answers have dangerous headers: with them,
// the origin could control a browser, a cache or a client of the mirror. The client must not get these headers.
func TestARelayedAnswerIsJSONThatTheMirrorVouchesFor(t *testing.T) {
	for _, c := range []struct {
		name, kind, encoding string
		want                 int
	}{
		{"JSON", "application/json", "", 200},
		{"JSON with an encoding", "Application/JSON; charset=UTF-8", "", 200},
		{"a page", "text/html", "", 503},
		{"a script", "application/javascript", "", 503},
		{"JSON in another encoding", "application/json; charset=utf-7", "", 503},
		{"no type", "", "", 503},
		{"two types", "application/json, text/html", "", 503},
		{"compressed", "application/json", "gzip", 503},
	} {
		r := stage(t, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h["Content-Type"] = []string{c.kind}
			for _, name := range []string{"Location", "Set-Cookie", "Refresh", "Link", "Content-Location", "Clear-Site-Data",
				"Access-Control-Allow-Origin", "Strict-Transport-Security"} {
				h.Set(name, "https://other.example")
			}
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
			if c.encoding != "" {
				h.Set("Content-Encoding", c.encoding)
			}
			_, _ = io.WriteString(w, "{}")
		})
		got := get(r, "/api/2.5/transfers/x")
		expect.Equal(t, got.Code, c.want, "%s", c.name)
		for name, values := range got.Header() {
			if strings.Contains(strings.Join(values, " "), "other.example") || strings.Contains(values[0], "immutable") {
				t.Errorf("%s: got %s %q, want nothing of the origin", c.name, name, values)
			}
		}
		expect.Equal(t, got.Header().Get("Content-Type"), "application/json", "%s: the type", c.name)
	}
}

func TestScriptsAndDownloadsAreNotRelayed(t *testing.T) {
	r := stage(t, func(http.ResponseWriter, *http.Request) { t.Error("got a request, want none") })
	for _, query := range []string{"?opt_jsonp=f", "?download=x", "?a=1&opt_jsonp="} {
		expect.Equal(t, get(r, "/api/2.5/transfers/x"+query).Code, 503, "%s", query)
	}
}
