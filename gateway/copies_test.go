package gateway

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestAClientReadsItsShareOfWholeCopies has a client that reads the maximum number of whole copies. One more read
// must be refused.
// Promises: whole-bounds
func TestAClientReadsItsShareOfWholeCopies(t *testing.T) {
	const share, path = 4, "/data/assets.csv"
	begun, release := make(chan struct{}, share), make(chan struct{})
	s := start(t, func(c *Config) {
		c.Assets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
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
			if got := askFor(s, path, one, ""); got.Code != http.StatusOK {
				t.Errorf("a reader within the share: got %d %s, want 200", got.Code, got.Body)
			}
		})
		<-begun
	}
	for _, c := range []struct {
		name, path, addr, key string
		status                int
	}{
		{"one more of the same address", "/data/items.csv", "192.0.2.1:2", "", http.StatusTooManyRequests},
		{"one with its hash", "/data/" + strings.Repeat("0", 64) + "/items.csv", one, "", http.StatusTooManyRequests},
		{"another route of the same address", segmentPath, one, "", http.StatusOK},
		{"another address", "/data/items.csv", another, "", http.StatusOK},
		{"a key at the same address", "/data/items.csv", one, "key", http.StatusOK},
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
		if got := askFor(s, "/data/items.csv", one, ""); got.Code != http.StatusOK {
			t.Errorf("after the others have ended: got %d %s, want 200", got.Code, got.Body)
		}
	}
}
