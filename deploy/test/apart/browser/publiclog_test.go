package browser

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

const asset = `{"data":{"assetType":"bounce","title":"Приміщення","description":"Перший поверх",
	"items":[{"description":"Приміщення","classification":{"id":"04121000-2","description":"Приміщення"},"quantity":240.5,
		"unit":{"code":"MTK"},"address":{"countryName":"Україна"},"registrationDetails":{"status":"unknown"}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"1637-10"}],
	"assetCustodian":{"name":"Фонд","identifier":{"scheme":"UA-EDR","id":"00032945"},
		"address":{"countryName":"Україна"},"contactPoint":{"name":"Реєстратор","telephone":"+380440000000"}}}}`

// send sends a request with a sandbox key and returns the answer's body.
func (r *registry) send(t *testing.T, method, path, key, body string) []byte {
	t.Helper()
	req, err := http.NewRequest(method, r.api+path, strings.NewReader(body))
	expect.OK(t, err)
	req.SetBasicAuth(key, "")
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	expect.OK(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 400 {
		t.Fatalf("%s %s: got %d %s, %v, want success", method, path, answer.StatusCode, text, err)
	}
	return text
}

// publish publishes an asset, waits until the log has a leaf for it, and returns its id.
func (r *registry) publish(t *testing.T) string {
	t.Helper()
	var made struct{ Data struct{ ID string } }
	expect.OK(t, json.Unmarshal(r.send(t, "POST", "/assets", "broker", asset), &made))
	r.send(t, "PATCH", "/assets/"+made.Data.ID, "administrator", `{"data":{"status":"pending"}}`)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(strings.TrimSuffix(r.api, "/api/2.5") + "/log/checkpoint")
		expect.OK(t, err)
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return made.Data.ID
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d of the checkpoint, want 200", answer.StatusCode)
		}
	}
}
