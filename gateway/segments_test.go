package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"asset-registry/shared/testing/expect"
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

// TestAClientReadsItsShare has a client that reads the maximum number of segments or of whole copies. One more read
// must be refused.
// Promises: segment-readers, whole-bounds
func TestAClientReadsItsShare(t *testing.T) {
	expect.Equal(t, DefaultClientSegments, 16, "segments of a client by default")
	const one, again, another = "192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"
	type reader struct {
		name, path, addr, key string
		status                int
	}
	for _, c := range []struct {
		held, free string // readings of one wait, and those of the other do not
		share      int
		others     []reader
	}{
		{segmentPath, segmentPath + "2", 3, []reader{
			{"one more of the same address", segmentPath, again, "", http.StatusTooManyRequests},
			{"another route of the same address", "/api/2.5/snapshot", one, "", http.StatusOK},
		}},
		{"/data/assets.csv", "/data/items.csv", 4, []reader{
			{"one more of the same address", "/data/items.csv", again, "", http.StatusTooManyRequests},
			{"one with its hash", "/data/" + strings.Repeat("0", 64) + "/items.csv", one, "", http.StatusTooManyRequests},
			{"another route of the same address", segmentPath, one, "", http.StatusOK},
		}},
	} {
		begun, release := make(chan struct{}, 10), make(chan struct{})
		s := start(t, func(conf *Config) {
			conf.Settings.ClientSegments = 3
			conf.Assets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == c.held {
					begun <- struct{}{}
					<-release
				}
				_, _ = w.Write([]byte("{}"))
			})
		})
		var reading sync.WaitGroup
		for range c.share {
			reading.Go(func() {
				if got := askFor(s, c.held, one, ""); got.Code != http.StatusOK {
					t.Errorf("a reader of %s within the share: got %d %s, want 200", c.held, got.Code, got.Body)
				}
			})
			<-begun
		}
		for _, r := range append(c.others, reader{"another address", c.free, another, "", http.StatusOK},
			reader{"a key at the same address", c.free, one, "key", http.StatusOK}) {
			got := askFor(s, r.path, r.addr, r.key)
			if after := got.Header().Get("Retry-After"); got.Code != r.status || (after != "") != (r.status != http.StatusOK) {
				t.Errorf("%s, %s: got %d %s, Retry-After %q; want %d", c.held, r.name, got.Code, got.Body, after, r.status)
			}
		}
		close(release)
		reading.Wait()
		for range c.share + 1 {
			if got := askFor(s, c.held, one, ""); got.Code != http.StatusOK {
				t.Errorf("%s after the others have ended: got %d %s, want 200", c.held, got.Code, got.Body)
			}
		}
	}
}
