package assetclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"asset-registry/shared/identity"
)

// Webhook is a webhook as an administrator sees it (docs/contract.md, "Webhooks").
type Webhook struct {
	ID              string
	DateCreated     time.Time
	Broker          string
	ByAdministrator bool
	URL             string
	Version, Mode   string
	Fields          string `json:"opt_fields"`
	State, Reason   string
	Offset          string
	Behind          int64 // how far the webhook is behind the feed, in seconds
	Failures        int
	LastError       string
	Next, Succeeded *time.Time // time of the next attempt and of the last success; nil: there is none
}

// WebhookAction is an action of the console on a webhook. Its text is also the name of the action in the audit log.
type WebhookAction string

// The actions on webhooks.
const (
	StopWebhook   WebhookAction = "webhook.stop"
	ResumeWebhook WebhookAction = "webhook.resume"
	ReplayWebhook WebhookAction = "webhook.replay"
	RemoveWebhook WebhookAction = "webhook.remove"
)

// WebhookActions returns every action on webhooks.
func WebhookActions() []WebhookAction {
	return []WebhookAction{StopWebhook, ResumeWebhook, ReplayWebhook, RemoveWebhook}
}

// administrator returns the identity with which the console calls the asset services for the user of a key.
func administrator(keyID string) identity.Identity {
	return identity.Identity{Broker: "console", KeyID: keyID, Role: identity.Administrator}
}

const webhooksPath = "/api/2.5/webhooks"

// Webhooks returns a page of a broker's webhooks. If broker is "", the page has webhooks of all brokers. The argument
// `after` is the id of the last webhook before the page. The result `next` is the argument `after` for the next page;
// it is "" on the last page.
func (c *Client) Webhooks(ctx context.Context, keyID, broker, after string) (found []Webhook, next string, err error) {
	query := url.Values{"broker": {broker}, "after": {after}}
	var page struct {
		Data []Webhook
		Next struct{ After string } `json:"next_page"`
	}
	err = c.read(ctx, c.http, administrator(keyID), webhooksPath+"?"+query.Encode(), &page)
	return page.Data, page.Next.After, err
}

// Webhook returns one webhook.
func (c *Client) Webhook(ctx context.Context, keyID, id string) (Webhook, error) {
	var answer struct{ Data Webhook }
	err := c.read(ctx, c.http, administrator(keyID), webhookPath(id), &answer)
	return answer.Data, err
}

func webhookPath(id string) string { return webhooksPath + "/" + url.PathEscape(id) }

// ChangeWebhook performs an action on a webhook. A replay begins at the argument `offset`; "": at the webhook's own
// offset.
func (c *Client) ChangeWebhook(ctx context.Context, keyID, id string, do WebhookAction, offset string) error {
	method, path, data := http.MethodPatch, webhookPath(id), map[string]string{}
	switch do {
	case StopWebhook:
		data["state"] = "disabled"
	case ResumeWebhook:
		data["state"] = "active"
	case ReplayWebhook:
		method, path = http.MethodPost, path+"/replay"
		if offset != "" {
			data["offset"] = offset
		}
	case RemoveWebhook:
		_, err := c.call(ctx, administrator(keyID), http.MethodDelete, path, nil, maxFound)
		return err
	default:
		return fmt.Errorf("webhooks have no action %q", do)
	}
	body, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("change webhook %s: %w", id, err)
	}
	_, err = c.call(ctx, administrator(keyID), method, path, body, maxFound)
	return err
}
