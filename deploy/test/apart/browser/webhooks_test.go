package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// webhook creates a webhook that sends to an address, and returns its id.
func (r *registry) webhook(t *testing.T, key, address string) string {
	t.Helper()
	var made struct{ Data struct{ ID string } }
	body, err := json.Marshal(map[string]any{"data": map[string]string{"url": address, "offset": "2026-01-01"}})
	expect.OK(t, err)
	expect.OK(t, json.Unmarshal(r.send(t, "POST", "/webhooks", key, string(body)), &made))
	return made.Data.ID
}

// awaitError waits until an attempt to send to a webhook has failed.
func (r *registry) awaitError(t *testing.T, id string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var got struct{ Data struct{ LastError string } }
		expect.OK(t, json.Unmarshal(r.send(t, "GET", "/webhooks/"+id, "administrator", ""), &got))
		if got.Data.LastError != "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("got no failed attempt, want one")
		}
	}
}

// deaf starts a receiver that answers every message with 503, and returns its address.
func deaf(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
