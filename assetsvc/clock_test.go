package assetsvc

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/keyring"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestAServiceWithAWrongClockIsNotReady compares the clock with those of MongoDB and of an auth service.
func TestAServiceWithAWrongClockIsNotReady(t *testing.T) {
	auth := httptest.NewServer(http.NotFoundHandler())
	defer auth.Close()
	s := expect.Get(New(t.Context(), Config{
		Store: mongotest.Start(t).URI(t, "clocks"), AuthURLs: []string{auth.URL}, Log: slog.New(slog.DiscardHandler),
		Secrets: keyring.Ring{bytes.Repeat([]byte{7}, keyring.MinLength)},
		Now:     func() time.Time { return time.Now().Add(-time.Hour) },
	}))(t)
	defer s.Close()
	for wait := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := httptest.NewRecorder()
		s.Handler().ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if got.Code == http.StatusServiceUnavailable && strings.Contains(got.Body.String(), "h0m0s behind those of most") {
			return
		}
		if time.Now().After(wait) {
			t.Fatalf("got %d %s, want 503 that says why", got.Code, got.Body)
		}
	}
}

// TestTheLogIsNotBehindByAClock reports times of checkpoints from clocks that are wrong. The age of the oldest change
// without a checkpoint must be that of the process, which nobody sets.
func TestTheLogIsNotBehindByAClock(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, ahead := range []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year} {
		synctest.Test(t, func(t *testing.T) {
			w := logWriter{begun: time.Now()}
			w.cover(time.Time{})
			time.Sleep(time.Hour)
			w.cover(time.Now())
			w.cover(time.Now().Add(ahead).Round(0))
			time.Sleep(time.Minute)
			expect.Equal(t, w.behind(), time.Minute, "a clock %v ahead: behind", ahead)
		})
	}
}
