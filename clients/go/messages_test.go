package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestMessages reads right and wrong messages. It must get ErrSignature for the wrong messages. The tests of
// deploy/test/apart/webhooks check the same messages with the library of Standard Webhooks.
func TestMessages(t *testing.T) {
	text, err := os.ReadFile("../../deploy/test/apart/webhooks/testdata/messages.json")
	must(t, err)
	var messages []struct {
		Name, ID, Timestamp, Signature, Body string
		Secret                               string
		Now                                  int64
		Right                                bool
	}
	must(t, json.Unmarshal(text, &messages))
	for _, m := range messages {
		t.Run(m.Name, func(t *testing.T) {
			header := http.Header{}
			header.Set("webhook-id", m.ID)
			header.Set("webhook-timestamp", m.Timestamp)
			header.Set("webhook-signature", m.Signature)
			got, err := readMessage(Secret(m.Secret), header, []byte(m.Body), time.Unix(m.Now, 0))
			if m.Right != (err == nil) || !m.Right && !errors.Is(err, ErrSignature) {
				t.Fatalf("got %v, want right %t", err, m.Right)
			}
			switch {
			case got.Type == WebhookChallenge && got.Challenge != "dGVzdA":
				t.Errorf("got the challenge %q, want dGVzdA", got.Challenge)
			case got.Type == AssetsChanged && got.Entries[0].Items[0].Quantity != "240.50010":
				t.Errorf("got the quantity %q, want 240.50010", got.Entries[0].Items[0].Quantity)
			case m.Right && got.Type != WebhookChallenge && got.Type != AssetsChanged:
				t.Errorf("got the type %q, want one of a message", got.Type)
			}
		})
	}
}

func TestReadMessageIsOfNow(t *testing.T) {
	header := http.Header{}
	header.Set("webhook-timestamp", "1790000000")
	if _, err := ReadMessage("whsec_AAAA", header, nil); !errors.Is(err, ErrSignature) {
		t.Errorf("an old message: got %v, want %v", err, ErrSignature)
	}
	if _, err := ReadMessage("whsec_?", header, nil); err == nil || errors.Is(err, ErrSignature) {
		t.Errorf("a secret that is no base64: got %v, want another error", err)
	}
}
