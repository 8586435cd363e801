package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestABodyThatFailsEndsItsRequest sends bodies that end too early. Each request must return an error.
func TestABodyThatFailsEndsItsRequest(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	t.Cleanup(s.Close)
	p := newPool(t, s.URL)
	for range 2 { // each request needs a new connection, because the failed one is closed
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://service/", io.NopCloser(strings.NewReader("12")))
		expect.OK(t, err)
		r.ContentLength = 3
		if resp, err := p.RoundTrip(r); err == nil {
			resp.Body.Close()
			t.Errorf("got the answer %d, want an error", resp.StatusCode)
		}
	}
}
