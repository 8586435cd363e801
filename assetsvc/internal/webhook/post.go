package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// userAgent names the sender to receivers.
const userAgent = "asset-registry-webhooks"

// answer is the end of one attempt.
type answer struct {
	status int           // of the answer; 0: there was none
	body   []byte        // the first bytes
	after  time.Duration // the receiver asks to wait so long
	fault  string        // for the log; "": acknowledged with 2xx
	guard  bool          // the address was refused, nothing was sent
}

// told returns what the owner learns of a failure: "failed", and the status if there was an
// answer. More would show what listens at which address, and how it fails.
func (a answer) told() string {
	switch {
	case a.fault == errUnopened: // nothing was sent
		return a.fault
	case a.status == 0:
		return "failed"
	}
	return fmt.Sprintf("failed: %d", a.status)
}

// post sends a message once. It follows no redirect. fault quotes nothing that the receiver has
// sent.
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
	// The transport repeats the request if a connection ends that was idle. The header is
	// not sent (http.Transport).
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
			a.body = nil // it acknowledges all the same
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

// faultOf returns the text for an error of the connection. It names no address, since a
// name may have resolved to a private one.
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
