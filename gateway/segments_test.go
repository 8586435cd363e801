package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const segmentPath = "/api/2.5/snapshot/segments/x"

// askFor sends a request for a segment from an address, with a key if it is not "".
func askFor(s *Server, path, addr, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = addr
	if key != "" {
		r.SetBasicAuth(key, "")
	}
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, r)
	return recorder
}

// Promises: segment-readers
func TestAClientReadsItsShareOfSegments(t *testing.T) {
	const share = 3
	if DefaultClientSegments != 16 {
		t.Errorf("got %d segments of a client by default, want 16", DefaultClientSegments)
	}
	begun, release := make(chan struct{}, 10), make(chan struct{})
	s := start(t, func(c *Config) {
		c.Settings.ClientSegments = share
		c.Assets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/x") {
				begun <- struct{}{}
				<-release
			}
			_, _ = w.Write([]byte("{}"))
		})
	})
	const one, another = "192.0.2.1:1", "192.0.2.2:1"
	var reading sync.WaitGroup
	for range share {
		reading.Go(func() {
			if got := askFor(s, segmentPath, one, ""); got.Code != http.StatusOK {
				t.Errorf("a reader within the share: got %d %s, want 200", got.Code, got.Body)
			}
		})
		<-begun
	}
	for _, c := range []struct {
		name, path, addr, key string
		status                int
	}{
		{"one more of the same address", segmentPath, "192.0.2.1:2", "", http.StatusTooManyRequests},
		{"another route of the same address", "/api/2.5/snapshot", one, "", http.StatusOK},
		{"a segment of another address", segmentPath + "2", another, "", http.StatusOK},
		{"a key at the same address", segmentPath + "2", one, "key", http.StatusOK},
	} {
		got := askFor(s, c.path, c.addr, c.key)
		if got.Code != c.status {
			t.Errorf("%s: got %d %s, want %d", c.name, got.Code, got.Body, c.status)
		}
		if again := got.Header().Get("Retry-After"); (again != "") != (c.status == http.StatusTooManyRequests) {
			t.Errorf("%s: got Retry-After %q after %d", c.name, again, got.Code)
		}
	}
	close(release)
	reading.Wait()
	for range share + 1 {
		if got := askFor(s, segmentPath, one, ""); got.Code != http.StatusOK {
			t.Errorf("after the others have ended: got %d %s, want 200", got.Code, got.Body)
		}
	}
}
