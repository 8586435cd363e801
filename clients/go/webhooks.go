package client

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Webhook sends the changes of the feed to an address (docs/contract.md, "Webhooks"). A time that the
// registry does not send is an empty Timestamp.
type Webhook struct {
	ID              string         `json:"id"`
	DateCreated     Timestamp      `json:"dateCreated"`
	Broker          string         `json:"broker"`                    // broker whose key has created the webhook
	ByAdministrator bool           `json:"byAdministrator,omitempty"` // only administrators see it
	URL             string         `json:"url"`
	Version         string         `json:"version"`             // version of the entries
	Mode            string         `json:"mode"`                // "", "test" or "_all_"
	OptFields       string         `json:"opt_fields"`          // "*": whole assets; "": id and dateModified
	Filters         WebhookFilters `json:"filters,omitzero"`    // which assets it sends
	State           string         `json:"state"`               // "unverified", "active" or "disabled"
	Reason          string         `json:"reason,omitempty"`    // "paused", "stopped", "gone", "failing" or "unverified"
	Offset          Timestamp      `json:"offset"`              // the receiver has acknowledged all changes up to it
	Behind          int64          `json:"behind"`              // seconds since the oldest change that is not acknowledged
	Failures        int64          `json:"failures"`            // failed attempts since the last success
	LastError       string         `json:"lastError,omitempty"` // empty after a success
	Next            Timestamp      `json:"next,omitempty"`      // time before which no attempt is made
	Succeeded       Timestamp      `json:"succeeded,omitempty"`
	PublicKey       string         `json:"publicKey,omitempty"` // verifies signatures v1a: "whpk_..."
}

// WebhookFilters are the filters of a webhook. A search has the same filters. An asset meets a filter if it has one of
// the values of the filter. Every asset meets a filter without values.
type WebhookFilters struct {
	Status         []string `json:"status,omitempty"`
	Type           []string `json:"type,omitempty"` // assetType
	Classification []string `json:"classification,omitempty"`
	Region         []string `json:"region,omitempty"`
	Locality       []string `json:"locality,omitempty"`
	Custodian      []string `json:"custodian,omitempty"`
	Owner          []string `json:"owner,omitempty"`
}

// WebhookAccess holds the secret of a webhook. The registry returns each secret only once.
type WebhookAccess struct {
	Secret Secret `json:"secret"` // verifies signatures v1: "whsec_..."
}

// NewWebhook is a webhook with its secret.
type NewWebhook struct {
	Webhook Webhook       `json:"data"`
	Access  WebhookAccess `json:"access"`
}

// WebhookSettings are what a client chooses for a new webhook. Only URL is required.
type WebhookSettings struct {
	URL       string         `json:"url"`
	Mode      string         `json:"mode,omitempty"`       // as in Webhook
	OptFields string         `json:"opt_fields,omitempty"` // as in Webhook
	Filters   WebhookFilters `json:"filters,omitzero"`     // which assets it sends; zero: all
	Offset    Timestamp      `json:"offset,omitempty"`     // sends changes after this offset; empty: only future ones
	State     string         `json:"state,omitempty"`      // "disabled" creates a paused webhook
}

// WebhookChange changes a webhook. Empty fields stay as they are.
type WebhookChange struct {
	URL   string `json:"url,omitempty"`   // the new address must first answer a challenge
	State string `json:"state,omitempty"` // "disabled" pauses, "active" resumes
}

const webhooks = "webhooks"

// CreateWebhook creates a webhook. It sends a new Idempotency-Key, so its retries create only one webhook.
func (c *Client) CreateWebhook(ctx context.Context, s WebhookSettings) (NewWebhook, error) {
	r := request{method: http.MethodPost, path: path(webhooks), data: s, idempotency: rand.Text(), repeatable: true}
	return fetch[NewWebhook](ctx, c, r)
}

// Webhooks returns the webhooks of the key's broker, in the order of their ids. With an administrator's key it
// returns all webhooks, or the webhooks of the given broker if its name is not empty. The sequence ends with
// the first error.
func (c *Client) Webhooks(ctx context.Context, broker string) iter.Seq2[Webhook, error] {
	return listed[Webhook](ctx, c, path(webhooks), broker)
}

// listed returns the entries of a list in the order of their ids. With an administrator's key these are all
// entries, or the entries of the given broker if its name is not empty. The sequence ends with the first error.
// If a page with entries names itself or an earlier page as the next page, this is an error, because the list
// would have no end.
func listed[T any](ctx context.Context, c *Client, path, broker string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := url.Values{}
		if broker != "" {
			query.Set("broker", broker)
		}
		for {
			after := query.Get("after")
			page, err := fetch[struct {
				Data []T `json:"data"`
				Next struct {
					After string `json:"after"`
				} `json:"next_page"`
			}](ctx, c, read(path, query))
			if err == nil && page.Next.After != "" && len(page.Data) > 0 && page.Next.After <= after {
				err = fmt.Errorf("GET %s: %w: the next page of %q is %q", path, errNoPage, after, page.Next.After)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, entry := range page.Data {
				if !yield(entry, nil) {
					return
				}
			}
			if page.Next.After <= after { // After is empty if there is no next page
				return
			}
			query.Set("after", page.Next.After)
		}
	}
}

// Webhook reads a webhook.
func (c *Client) Webhook(ctx context.Context, id string) (Webhook, error) {
	return dataOf[Webhook](ctx, c, read(path(webhooks, id), nil))
}

// ChangeWebhook pauses or resumes a webhook, or changes its address.
func (c *Client) ChangeWebhook(ctx context.Context, id string, change WebhookChange) (Webhook, error) {
	return c.webhook(ctx, id, request{method: http.MethodPatch, path: path(webhooks, id), data: change, repeatable: true})
}

// ReplayWebhook sends the changes after an offset again. With an empty offset, a disabled
// webhook continues after the last acknowledged change.
func (c *Client) ReplayWebhook(ctx context.Context, id string, from Timestamp) (Webhook, error) {
	data := Fields{}
	if from != "" {
		data["offset"] = from
	}
	return c.webhook(ctx, id, request{
		method: http.MethodPost, path: path(webhooks, id, "replay"), data: data, repeatable: true,
	})
}

// webhook sends a request about one webhook. Its answer has the webhook.
func (c *Client) webhook(ctx context.Context, id string, r request) (Webhook, error) {
	return dataOf[Webhook](ctx, c, r)
}

// RotateWebhook replaces the secrets of a webhook. For a day, messages are signed with the old and the new
// secret. A try with an unknown result is not repeated, because each try makes a new secret.
func (c *Client) RotateWebhook(ctx context.Context, id string) (NewWebhook, error) {
	return fetch[NewWebhook](ctx, c, request{method: http.MethodPost, path: path(webhooks, id, "rotate"), data: Fields{}})
}

// RemoveWebhook removes a webhook.
func (c *Client) RemoveWebhook(ctx context.Context, id string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: path(webhooks, id)})
	return err
}

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
