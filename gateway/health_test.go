package gateway

import (
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/routes"
)

// TestHealthIsToldInACrowd checks the health of a gateway that has the maximum number of requests. The checks come
// from an address that is above its read limit. The answer must still be 200.
// Promises: health-in-a-crowd
func TestHealthIsToldInACrowd(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	s := start(t, func(c *Config) {
		c.Settings.MaxConcurrent = 1
		c.Limits = Limits{AddressRead: new(int64(1))}
		c.Assets = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/slow") {
				arrived <- struct{}{}
				<-leave
			}
		})
	})
	defer close(leave)
	go fetch(t, s, "GET", "/api/2.5/assets/slow")
	<-arrived
	if got := fetch(t, s, "GET", "/api/2.5/assets"); got.Code != 503 {
		t.Fatalf("a page: got %d %s, want 503", got.Code, got.Body)
	}
	for _, v := range routes.Versions() {
		for _, method := range []string{"GET", "HEAD"} {
			for range 5 {
				got := fetch(t, s, method, "/api/"+v.Name+"/health", "Authorization", "Basic d3Jvbmc6") // an unknown key
				if got.Code != 200 || got.Header().Get("RateLimit") != "" {
					t.Errorf("%s, version %s: got %d %v, want 200 without RateLimit", method, v.Name, got.Code, got.Header())
				}
			}
		}
	}
}
