package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// userAgent names the sender to receivers.
const userAgent = "asset-registry-webhooks"

// answer is the result of one attempt.
type answer struct {
	status int           // HTTP status; 0: there was no answer
	body   []byte        // the first bytes of the answer's body
	after  time.Duration // how long the receiver asks to wait
	fault  string        // what went wrong, for the log; "": the receiver answered with 2xx
	guard  bool          // the address was refused, nothing was sent
}

// told returns the text that the owner of the endpoint may see about a failure: "failed", and the status if
// there was an answer. More detail would reveal what listens at an address.
func (a answer) told() string {
	switch {
	case a.fault == errUnopened: // nothing was sent
		return a.fault
	case a.status == 0:
		return "failed"
	}
	return fmt.Sprintf("failed: %d", a.status)
}

// post sends a message once. It follows no redirect. Nothing in answer.fault comes from the receiver.
func post(ctx context.Context, via http.RoundTripper, url string, s signer, m message) answer {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.body))
	if err != nil {
		return answer{fault: "the address is malformed"}
	}
	s.sign(r.Header, m.id, time.Now(), m.body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", userAgent)
	// Because of this key, the transport repeats the request if the receiver closes the idle connection that was used.
	// A header without values is not sent (http.Transport).
	r.Header["Idempotency-Key"] = []string{}
	response, err := via.RoundTrip(r)
	if err != nil {
		return answer{fault: faultOf(err), guard: errors.Is(err, errNotPublic)}
	}
	defer response.Body.Close() //nolint:errcheck // the answer has what is needed
	a := answer{status: response.StatusCode}
	a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case a.status/100 == 2:
		if err != nil {
			a.body = nil // the status acknowledges the message even if the body cannot be read
		}
	case a.status/100 == 3:
		a.fault = fmt.Sprintf("the receiver answered %d; redirects are not followed", a.status)
	default:
		a.fault = fmt.Sprintf("the receiver answered %d", a.status)
	}
	if a.fault != "" {
		a.after = retryAfter(response.Header, time.Now())
	}
	return a
}

// faultOf returns a text for an error of the connection. The text names no IP address, because a name may have
// resolved to a private one.
func faultOf(err error) string {
	var (
		timeout  net.Error
		resolve  *net.DNSError
		untrust  *tls.CertificateVerificationError
		protocol tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, errNotPublic), errors.As(err, &resolve):
		return errNotPublic.Error()
	case errors.As(err, &untrust):
		return "the certificate of the receiver is not valid for the address"
	case errors.As(err, &protocol):
		return "the receiver does not speak TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the receiver did not answer in time"
	}
	return "the connection to the receiver failed"
}

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
