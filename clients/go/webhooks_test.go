package client

import (
	"errors"
	"testing"
)

// hook is an answer with a webhook and its secret.
var hook = reply{200, `{"access":{"secret":"whsec_x"},"data":{"id":"w1","state":"active","behind":7}}`, nil}

func TestRequestsOfWebhooks(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(*Client) error
		want string
	}{
		{"create", func(c *Client) error {
			made, err := c.CreateWebhook(t.Context(), WebhookSettings{URL: "https://x", OptFields: "*", Offset: "2026"})
			errorIf(t, made.Access.Secret != "whsec_x" || made.Webhook.Behind != 7,
				"got %+v, want the secret whsec_x and behind 7", made)
			return err
		}, `POST /api/2.5/webhooks {"data":{"url":"https://x","opt_fields":"*","offset":"2026"}}`},
		{"read", func(c *Client) error { _, err := c.Webhook(t.Context(), "w1"); return err }, "GET /api/2.5/webhooks/w1"},
		{"pause", func(c *Client) error {
			_, err := c.ChangeWebhook(t.Context(), "w1", WebhookChange{State: "disabled"})
			return err
		}, `PATCH /api/2.5/webhooks/w1 {"data":{"state":"disabled"}}`},
		{"replay", func(c *Client) error { _, err := c.ReplayWebhook(t.Context(), "w1", "2026"); return err },
			`POST /api/2.5/webhooks/w1/replay {"data":{"offset":"2026"}}`},
		{"go on", func(c *Client) error { _, err := c.ReplayWebhook(t.Context(), "w1", ""); return err },
			`POST /api/2.5/webhooks/w1/replay {"data":{}}`},
		{"rotate", func(c *Client) error { _, err := c.RotateWebhook(t.Context(), "w1"); return err },
			`POST /api/2.5/webhooks/w1/rotate {"data":{}}`},
		{"remove", func(c *Client) error { return c.RemoveWebhook(t.Context(), "w1") }, "DELETE /api/2.5/webhooks/w1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegistry(t, hook)
			must(t, c.call(r.client(t)))
			r.check(t, c.want)
			if key := r.heads()[0].Get("Idempotency-Key"); (key != "") != (c.name == "create") {
				t.Errorf("got Idempotency-Key %q, want one for a creation only", key)
			}
			if err := c.call(r.client(t)); err != nil {
				t.Errorf("a second call: got %v, want none", err)
			}
		})
	}
	r := newRegistry(t, hook)
	if _, err := r.client(t).Webhook(t.Context(), ""); !errors.Is(err, errNoID) {
		t.Errorf("an empty id: got %v, want %v", err, errNoID)
	}
}

func TestWebhooksAreReadInPages(t *testing.T) {
	first := reply{200, `{"data":[{"id":"w1"},{"id":"w2"}],"next_page":{"after":"w2"}}`, nil}
	r := newRegistry(t, first, reply{200, `{"data":[{"id":"w3"}]}`, nil})
	var got []string
	for w, err := range r.client(t).Webhooks(t.Context(), "b1") {
		must(t, err)
		got = append(got, w.ID)
	}
	errorIf(t, len(got) != 3 || got[2] != "w3", "got webhooks %v, want w1, w2 and w3", got)
	r.check(t, "GET /api/2.5/webhooks?broker=b1", "GET /api/2.5/webhooks?after=w2&broker=b1")
}

func TestARotationIsTriedOnce(t *testing.T) {
	r := newRegistry(t, breaks, hook)
	if _, err := r.client(t).RotateWebhook(t.Context(), "w1"); err == nil {
		t.Error("a rotation without an answer: got no error, want one: each try makes another secret")
	}
	if sent := r.sent(); len(sent) != 1 {
		t.Errorf("got requests %v, want one", sent)
	}
}
