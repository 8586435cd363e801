package console

import (
	"net/http"
	"net/url"
	"strings"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/authsvc/internal/audit"
)

// webhookList is the body of the page of all webhooks.
type webhookList struct {
	Broker   string
	Begun    bool // the page does not begin with the first webhook
	Webhooks []assetclient.Webhook
	Next     string // path of the next page; "": this is the last page
}

func (c *Console) listWebhooks(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	q := r.URL.Query()
	body := webhookList{Broker: strings.TrimSpace(q.Get("broker")), Begun: q.Get("after") != ""}
	found, next, err := c.Assets.Webhooks(r.Context(), by.KeyID(), body.Broker, q.Get("after"))
	if err != nil {
		return err
	}
	body.Webhooks = found
	if next != "" {
		body.Next = "/console/webhooks?" + url.Values{"broker": {body.Broker}, "after": {next}}.Encode()
	}
	v := view{Title: "Webhooks", Section: "webhooks", By: by, Notice: notices[q.Get("notice")], Body: body}
	return c.show(w, http.StatusOK, "webhooks", v)
}

// webhookPage is the body of the pages of one webhook.
type webhookPage struct {
	Webhook assetclient.Webhook
	Form    form // zero for an auditor, who may change nothing
}

func webhookPath(id string) string { return "/console/webhooks/" + url.PathEscape(id) }

func (c *Console) showWebhook(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	v := view{By: by, Notice: notices[r.URL.Query().Get("notice")]}
	body := webhookPage{}
	if v.MayChange() {
		var err error
		if body.Form, err = c.newForm(r.Context()); err != nil {
			return err
		}
	}
	return c.webhookPage(w, r, v, "webhook", body)
}

func (c *Console) showRemoveWebhook(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	return c.webhookPage(w, r, view{By: by}, "remove-webhook", webhookPage{Form: f})
}

// webhookPage shows a page about the webhook that the request names.
func (c *Console) webhookPage(w http.ResponseWriter, r *http.Request, v view, template string, body webhookPage) error {
	found, err := c.Assets.Webhook(r.Context(), v.By.KeyID(), r.PathValue("id"))
	if err != nil {
		return err
	}
	body.Webhook, v.Body = found, nil
	v.Title, v.Of, v.Section, v.Body = "Webhook of {}", found.Broker, "webhooks", body
	return c.show(w, statusOf(body.Form), template, v)
}

// webhookEntry is what the audit log shows of an action on a webhook. It does not have the webhook's address,
// which may hold a secret of the receiver.
type webhookEntry struct {
	Broker string `json:"broker"`
	State  string `json:"state"` // before the action
	Offset string `json:"offset,omitempty"`
}

// changeWebhook returns a handler that does an action on a webhook, by a form with the given fields. It writes the
// entry of the audit log first, so that nothing is done without an entry.
func (c *Console) changeWebhook(do assetclient.WebhookAction, fields ...string) handler {
	return func(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
		id, offset := r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("offset"))
		unread := unknown(r, fields)
		if err := unread.Err(); err != nil {
			return err
		}
		found, err := c.Assets.Webhook(r.Context(), by.KeyID(), id)
		if err != nil {
			return err
		}
		entry := webhookEntry{Broker: found.Broker, State: found.State, Offset: offset}
		if err := c.Admin.Note(r.Context(), by, string(do), audit.OfWebhook(id), entry); err != nil {
			return err
		}
		err = c.Assets.ChangeWebhook(r.Context(), by.KeyID(), id, do, offset)
		return settle(r, err, fields, func(f form) error {
			fresh, err := c.newForm(r.Context()) // a new form, because this one already has an entry
			if err != nil {
				return err
			}
			f.Values.Set("once", fresh.Once())
			return c.webhookPage(w, r, view{By: by}, "webhook", webhookPage{Form: f})
		}, func() error {
			if do == assetclient.RemoveWebhook {
				return redirect(w, r, "/console/webhooks", removed)
			}
			return redirect(w, r, webhookPath(id), webhookChanged)
		})
	}
}
