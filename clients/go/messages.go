package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Message is a message to the receiver of a webhook (docs/contract.md, "Webhooks").
type Message struct {
	Type      string    // AssetsChanged or WebhookChallenge
	Timestamp Timestamp // time of the message
	Offset    Timestamp // only in AssetsChanged: offset of the last entry
	Entries   []Asset   // only in AssetsChanged: the changed assets, in the order of the feed
	Challenge string    // only in WebhookChallenge: the receiver answers 2xx with {"challenge": Challenge}
}

// The types of messages.
const (
	AssetsChanged    = "assets.changed"
	WebhookChallenge = "webhook.challenge"
)

// ErrSignature is returned for a message that the registry has not signed, or whose time is not near the
// present.
var ErrSignature = errors.New("the message has no right signature")

// near is the maximum difference between the time of a message and the present time.
const near = 5 * time.Minute

// ReadMessage reads a message to the receiver of a webhook, if the message is signed with the webhook's secret. The
// argument `header` is the header of the request, and `body` has exactly the bytes of its body. The error wraps
// ErrSignature if no signature v1 is right, or if the time of the message differs from the present by over 5 minutes.
func ReadMessage(secret Secret, header http.Header, body []byte) (Message, error) {
	return readMessage(secret, header, body, time.Now())
}

func readMessage(secret Secret, header http.Header, body []byte, now time.Time) (Message, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), "whsec_"))
	if err != nil {
		// err is not wrapped, because it would reveal bytes of the secret.
		return Message{}, errors.New("the secret of a webhook is whsec_ and base64")
	}
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseUint(at, 10, 53)
	if err != nil || now.Sub(time.Unix(int64(seconds), 0)).Abs() > near {
		return Message{}, fmt.Errorf("%w: its time %.30q is not near", ErrSignature, at)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	right := false
	for signature := range strings.SplitSeq(header.Get("webhook-signature"), " ") {
		right = hmac.Equal(want, []byte(signature)) || right
	}
	if !right {
		return Message{}, ErrSignature
	}
	var m struct {
		Type      string
		Timestamp Timestamp
		Data      struct {
			Offset    Timestamp
			Entries   []Asset
			Challenge string
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return Message{}, fmt.Errorf("the message cannot be read: %w", err)
	}
	return Message{m.Type, m.Timestamp, m.Data.Offset, m.Data.Entries, m.Data.Challenge}, nil
}
