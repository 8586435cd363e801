package edge

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// TestWithoutMemoryAnswersAreNotCompressed asks for compressed answers while there is memory for one encoder, for none,
// and again for one.
func TestWithoutMemoryAnswersAreNotCompressed(t *testing.T) {
	budget := memory.NewBudget(2 * encoderSize) // only one encoder fits: it may use only three quarters
	text := make([]byte, 2*minCompressed)
	h, err := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}), Config{Encoders: budget})
	expect.OK(t, err)
	coding := func() string {
		r := httptest.NewRequest("GET", "/api/2.5/assets/a", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Header().Get("Content-Encoding")
	}
	expect.Equal(t, coding(), "gzip", "with memory: the coding")
	expect.FatalIf(t, !budget.Hold(encoderSize), "got no memory after the first answer, want it given back")
	expect.Equal(t, coding(), "", "without memory: the coding")
	budget.Release(encoderSize)
	expect.Equal(t, coding(), "gzip", "with memory again: the coding")
}
