package authapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// answering is an auth service that gives each request the same answer.
type answering struct {
	status int
	body   string
	last   *http.Request
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.last = r
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
	return w.Result(), nil
}

func newClient(t *testing.T, to http.RoundTripper) *Client {
	t.Helper()
	secrets := keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}
	signer, err := identity.NewSigner(secrets, time.Now)
	expect.OK(t, err)
	return NewClient(to, signer, "test")
}

// TestCallsWithAnAuditEntryAreSentOnce checks the header field that lets package upstream retry a request. Requests
// that make an entry of the audit log must not have this field. Each call must have a deadline.
func TestCallsWithAnAuditEntryAreSentOnce(t *testing.T) {
	service := &answering{status: 200, body: `{"broker":"b","key_id":"k","role":"broker","levels":"","token":"t",` +
		`"transfer":"u","sealed":"s","owner":"b"}`}
	c := newClient(t, service)
	for _, call := range []struct {
		name   string
		send   func(ctx context.Context) error
		repeat bool
	}{
		{"a verification", func(ctx context.Context) error { _, err := c.VerifyKey(ctx, "x"); return err }, true},
		{"a recovery", func(ctx context.Context) error {
			_, err := c.RecoverTokens(ctx, RecoverTokensRequest{})
			return err
		}, false},
		{"a note of a removal", func(ctx context.Context) error { return c.NoteRemoval(ctx, NoteRemovalRequest{}) }, false},
	} {
		expect.Must(t, call.send(t.Context()), "%s", call.name)
		if _, marked := service.last.Header["Idempotency-Key"]; marked != call.repeat {
			t.Errorf("%s: got marked as repeatable: %t, want %t", call.name, marked, call.repeat)
		}
		if end, ok := service.last.Context().Deadline(); !ok || time.Until(end) > callTimeout {
			t.Errorf("%s: got the deadline %v, want one within %v", call.name, end, callTimeout)
		}
	}
}

// TestAnswersThatAreNone gives answers that no auth service sends, or that refuse the caller's signature. A client of
// the registry cannot change their causes, so it must not get them as refusals of its key.
func TestAnswersThatAreNone(t *testing.T) {
	refusal := func(name string) string {
		return `{"status":"error","errors":[{"location":"header","name":"` + name + `","description":"no"}]}`
	}
	for _, c := range []struct {
		name string
		answering
		want fault.Kind
	}{
		{"an unknown key", answering{status: 401, body: refusal("Authorization")}, fault.Unauthorized},
		{"a refused signature", answering{status: 401, body: refusal(identity.Header)}, fault.Unavailable},
		{"a page of a proxy", answering{status: 502, body: "<html>"}, fault.Unavailable},
		{"half an answer", answering{status: 200, body: `{"broker":"b"`}, fault.Unavailable},
		{"an answer that names nobody", answering{status: 200, body: "{}"}, fault.Unavailable},
		{"an answer that is too long", answering{status: 200,
			body: `{"key_id":"k","role":"broker","levels":"","broker":"` + strings.Repeat("b", maxAnswer) + `"}`},
			fault.Unavailable},
	} {
		if _, err := newClient(t, &c.answering).VerifyKey(t.Context(), "x"); fault.KindOf(err) != c.want {
			t.Errorf("%s: got %v, want a fault of kind %v", c.name, err, c.want)
		}
	}
	few := &answering{status: 200, body: `{"sealed":["one"],"foreign":0}`}
	if got, err := newClient(t, few).Reseal(t.Context(), []string{"one", "two"}); err == nil {
		t.Errorf("one record for two: got %v, want an error", got)
	}
}
