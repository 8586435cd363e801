package webhooks

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"asset-registry/shared/testing/expect"
)

// TestMessagesOfTheClientsAreThoseOfTheStandard checks the test messages of the clients in Go, Python and
// TypeScript with the library of Standard Webhooks. The library would compare a message's time with the real clock,
// so the test compares the times itself.
func TestMessagesOfTheClientsAreThoseOfTheStandard(t *testing.T) {
	text, err := os.ReadFile("testdata/messages.json")
	expect.OK(t, err)
	var messages []struct {
		Name, Secret, ID, Timestamp, Signature, Body string
		Now                                          int64
		Right                                        bool
	}
	expect.OK(t, json.Unmarshal(text, &messages))
	for _, m := range messages {
		verifier, err := standard.NewWebhook(m.Secret)
		expect.OK(t, err)
		header := http.Header{}
		header.Set("webhook-id", m.ID)
		header.Set("webhook-timestamp", m.Timestamp)
		header.Set("webhook-signature", m.Signature)
		err = verifier.VerifyIgnoringTimestamp([]byte(m.Body), header)
		// The error of ParseInt does not matter: the library refuses a message whose time is not a number, and then
		// err is not nil.
		at, _ := strconv.ParseInt(m.Timestamp, 10, 64)
		if got := err == nil && at >= m.Now-300 && at <= m.Now+300; got != m.Right {
			t.Errorf("%s: got right %t and %v, want right %t", m.Name, got, err, m.Right)
		}
	}
	if len(messages) < 10 {
		t.Errorf("got %d messages, want at least 10", len(messages))
	}
}
