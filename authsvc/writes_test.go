package authsvc

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/redisstore"
	"asset-registry/shared/keyring"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestAServiceWithAWrongClockIsNotReady compares the clock with those of Redis and of an asset service.
func TestAServiceWithAWrongClockIsNotReady(t *testing.T) {
	assets := httptest.NewServer(http.NotFoundHandler())
	defer assets.Close()
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	s, err := New(t.Context(), Config{
		Store: redistest.Start(t).URL(), Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler), Admin: admin,
		AssetsURLs: []string{assets.URL}, Now: func() time.Time { return time.Now().Add(time.Hour) },
	})
	expect.OK(t, err)
	defer s.Close()
	awaitReadyz(t, s, http.StatusServiceUnavailable, "1h0m0s ahead of those of most")
}

// awaitReadyz waits until /readyz has the status and the text.
func awaitReadyz(t *testing.T, s *Server, status int, says string) {
	t.Helper()
	for wait := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := httptest.NewRecorder()
		s.Handler().ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if got.Code == status && strings.Contains(got.Body.String(), says) {
			return
		}
		if time.Now().After(wait) {
			t.Fatalf("got %d %s, want %d with %q", got.Code, got.Body, status, says)
		}
	}
}

// TestAServiceTellsThatItsStoreRefusesWrites starts a service on a Redis whose memory is full. The service must be
// ready, because it can verify keys, and /readyz must have the refusal.
func TestAServiceTellsThatItsStoreRefusesWrites(t *testing.T) {
	server := redistest.Start(t)
	before, err := redisstore.Open(server.URL(), metrictest.New())
	expect.OK(t, err)
	defer before.Close()
	if err := before.Ready(t.Context()); err != nil { // stores the format
		t.Fatal(err)
	}
	expect.OK(t, redis.NewClient(&redis.Options{Addr: server.Addr}).ConfigSet(t.Context(), "maxmemory", "1").Err())
	s, err := New(t.Context(), Config{Store: server.URL(), Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler)})
	expect.OK(t, err)
	defer s.Close()
	awaitReadyz(t, s, http.StatusOK, "Redis refuses writes: OOM")
}
