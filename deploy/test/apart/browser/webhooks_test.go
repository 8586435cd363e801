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

// TestAWebhookFromItsFailureToItsRemoval goes through the pages of webhooks, beginning at the menu. The audit log
// must have each action.
func TestAWebhookFromItsFailureToItsRemoval(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	b.goTo("/webhooks")
	b.mustSay("There are no webhooks yet")
	r.publish(t)
	id := r.webhook(t, "broker", deaf(t)+"/hook")
	r.awaitError(t, id)
	b.goTo("/keys")
	b.click(`a[href="/console/webhooks"]`)
	b.mustSay("127.0.0.1", "broker", "unverified")
	b.click(`a[href="/console/webhooks/` + id + `"]`)
	b.mustSay("/hook", "Last error", "Behind")
	b.screenshot("webhook-unverified")
	b.click(`form[action$="/stop"] button`)
	b.mustSay("Done.", "disabled: stopped", "Resume")
	b.fill(map[string]string{"offset": "yesterday"})
	b.click(`form[action$="/replay"] button`)
	b.mustSay("Nothing was saved yet", "ISO 8601")
	b.screenshot("webhook-refused")
	b.fill(map[string]string{"offset": "2026-11-20"})
	b.click(`form[action$="/replay"] button`)
	b.mustSay("Done.", "2026-11-20T00:00:00", "unverified")
	b.click(`form[action$="/stop"] button`)
	b.click(`form[action$="/resume"] button`)
	b.mustSay("Done.", "unverified")
	b.click(`a[href$="/remove"]`)
	b.mustSay("Remove the webhook?", "this cannot be undone")
	b.screenshot("webhook-remove")
	b.submit()
	b.mustSay("The webhook is removed.", "There are no webhooks yet")
	b.goTo("/audit")
	for _, done := range []string{"stopped", "resumed", "replayed", "removed"} {
		b.mustSay(done + " the webhook " + id)
	}
	b.mustBeContent()
}
