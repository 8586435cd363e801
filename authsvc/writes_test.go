package authsvc

import (
	"log/slog"
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
)

// TestAServiceTellsThatItsStoreRefusesWrites starts a service on a Redis whose memory is full. The service must be
// ready, because it can verify keys, and /readyz must have the refusal.
func TestAServiceTellsThatItsStoreRefusesWrites(t *testing.T) {
	server := redistest.Start(t)
	before, err := redisstore.Open(server.URL(), metrictest.New())
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := before.Ready(t.Context()); err != nil { // stores the format
		t.Fatal(err)
	}
	if err := redis.NewClient(&redis.Options{Addr: server.Addr}).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), Config{Store: server.URL(), Secrets: keyring.Ring{secret}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for wait := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		got := httptest.NewRecorder()
		s.Handler().ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if got.Code == http.StatusOK && strings.Contains(got.Body.String(), "Redis refuses writes: OOM") {
			return
		}
		if time.Now().After(wait) {
			t.Fatalf("got %d %s, want 200 with the refusal", got.Code, got.Body)
		}
	}
}
