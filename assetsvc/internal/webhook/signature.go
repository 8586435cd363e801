package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a message (Standard Webhooks, "Webhook headers").
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

// signer signs the messages to one endpoint. During a rotation it has two sets of keys, the new one first.
type signer []keys

// sign sets the headers of a message, which is sent at the given time.
func (s signer) sign(h http.Header, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signed := make([]byte, 0, len(id)+len(timestamp)+len(body)+2)
	signed = append(signed, id...)
	signed = append(signed, '.')
	signed = append(signed, timestamp...)
	signed = append(signed, '.')
	signed = append(signed, body...)
	var signatures []string
	for _, k := range s {
		mac := hmac.New(sha256.New, k.secret)
		mac.Write(signed)
		signatures = append(signatures,
			"v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)),
			"v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, signed)))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, strings.Join(signatures, " "))
}
