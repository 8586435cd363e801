package httpapi

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestHealthHasABoundOfItsOwn sends as many health requests as may be answered at the same time, and then one more.
// The last one must be refused. The others must share calls to the asset service.
// Promises: health-bound
func TestHealthHasABoundOfItsOwn(t *testing.T) {
	var asked atomic.Int64
	arrived, leave := make(chan struct{}), make(chan struct{})
	a, handler := open(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) == 1 {
			close(arrived)
		}
		<-leave
	}), nil)
	answers := make(chan *httptest.ResponseRecorder, maxHealth)
	for range maxHealth {
		go func() { answers <- send(handler, "GET", "/api/2.5/health") }()
	}
	<-arrived
	for a.health.current.Current() < maxHealth {
	}
	if got := send(handler, "GET", "/api/2.5/health"); got.Code != 503 || got.Header().Get("Retry-After") == "" {
		t.Errorf("one health check too many: got %d %v, want 503 with Retry-After", got.Code, got.Header())
	}
	close(leave)
	for range maxHealth {
		if got := <-answers; got.Code != 200 {
			t.Errorf("got %d %s, want 200", got.Code, got.Body)
		}
	}
	if n := asked.Load(); n >= maxHealth {
		t.Errorf("got %d requests to the asset service, want fewer than %d", n, maxHealth)
	}
	expect.Equal(t, send(handler, "GET", "/api/2.5/health").Code, 200, "after all others")
}
