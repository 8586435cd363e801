package searchsvc

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// unreachable is the transport to a registry that is down.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route")
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := New(t.Context(), Config{
		Of: "http://registry.example", Transport: unreachable{}, Dir: t.TempDir(), Timeout: 100 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: got %v, want nil", err)
		}
	})
	return s
}

func get(s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// TestAnswersWithoutAnIndex asks a service that could not read the registry yet.
func TestAnswersWithoutAnIndex(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{Path, 503, `"name":"search"`},
		{Path + "?q=будинок", 503, `"name":"search"`},
		{Path + "?limit=1000", 400, `"name":"limit"`},
		{Path + "?region=%zz", 400, `"name":"query"`},
		{"/readyz", 503, "starts"},
		{"/livez", 200, ""},
		{"/api/2.5/assets", 404, "not_found"},
	} {
		w := get(s, c.path)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: got %d %s, want %d and %q", c.path, w.Code, w.Body, c.status, c.says)
		}
		if c.status == 503 && strings.HasPrefix(c.path, Path) && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got no Retry-After, want one", c.path)
		}
	}
}

// TestTooManySearchesAreRefused takes all places. A further search waits for its time.
func TestTooManySearchesAreRefused(t *testing.T) {
	s := start(t)
	for range 2 * runtime.GOMAXPROCS(0) {
		leave, err := s.free.Acquire(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	w := get(s, Path)
	if w.Code != 503 || !strings.Contains(w.Body.String(), "too many searches") || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s and Retry-After %q, want 503, too many searches, and a time", w.Code, w.Body,
			w.Header().Get("Retry-After"))
	}
}

func TestFaultyConfigurationsAreRefused(t *testing.T) {
	good := Config{Of: "http://registry.example", Dir: "x", Log: slog.New(slog.DiscardHandler)}
	if err := good.Validate(); err != nil {
		t.Fatalf("got %v, want nil", err)
	}
	for name, spoil := range map[string]func(*Config){
		"--of":      func(c *Config) { c.Of = "registry" },
		"directory": func(c *Config) { c.Dir = "" },
		"times":     func(c *Config) { c.Timeout = -1 },
		"log":       func(c *Config) { c.Log = nil },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error about %s", err, name)
		}
	}
}
