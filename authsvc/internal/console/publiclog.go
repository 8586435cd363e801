package console

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// Assets calls the asset services (assetclient.Client). It reads the public log, the history of assets, and webhooks.
// It gives assets new tokens, and changes webhooks.
type Assets interface {
	Log(ctx context.Context) (assetclient.Log, error)
	admin.Assets
	History(ctx context.Context, keyID, id, offset string) (assetclient.History, error)
	Recover(ctx context.Context, by assetclient.Recoverer, id, reason string) (assetclient.Recovered, error)

	Webhooks(ctx context.Context, keyID, broker, after string) (found []assetclient.Webhook, next string, err error)
	Webhook(ctx context.Context, keyID, id string) (assetclient.Webhook, error)
	ChangeWebhook(ctx context.Context, keyID, id string, do assetclient.WebhookAction, offset string) error
}

// logPage is the body of the page of the public log.
type logPage struct {
	Log   assetclient.Log
	Empty bool // the log has no checkpoint yet
}

// showLog shows the newest checkpoint and its signatures.
func (c *Console) showLog(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	state, empty, err := c.logState(r.Context())
	if err != nil {
		return err
	}
	v := view{Title: "Public log", Section: "log", By: by, Body: logPage{state, empty}}
	return c.show(w, http.StatusOK, "log", v)
}

// logState returns the newest checkpoint. The result `empty` says that there is none.
func (c *Console) logState(ctx context.Context) (state assetclient.Log, empty bool, err error) {
	state, err = c.Assets.Log(ctx)
	if fault.KindOf(err) == fault.NotFound {
		return state, true, nil
	}
	return state, false, err
}

// historyPage is the body of the page of an asset's history.
type historyPage struct {
	Asset   adminapi.Asset
	History assetclient.History
	Names   map[string]string // names of the authors' keys by their ids
	Older   string            // path of the page with older changes; "": there is none
}

// historyPath returns the path of a page of an asset's history. The argument `offset` is "" for the newest
// changes.
func historyPath(id, offset string) string {
	query := url.Values{"id": {id}}
	if offset != "" {
		query.Set("offset", offset)
	}
	return "/console/asset?" + query.Encode()
}

var assetID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// showHistory shows an asset and its changes to an operator, and notes that in the audit log. Auditors are not allowed
// to see them, because drafts are not public.
func (c *Console) showHistory(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	if by.Role != apikey.Operator {
		return fault.New(fault.Forbidden, fault.Header, "Authorization", "Only operators may read the history of assets.")
	}
	id, err := assetOf(r)
	if err != nil {
		return err
	}
	p := historyPage{Names: map[string]string{}}
	if p.Asset, err = c.Assets.Asset(r.Context(), by.KeyID(), url.Values{"id": {id}}); err != nil {
		return err
	}
	if err := c.noteReading(r, by, p.Asset); err != nil {
		return err
	}
	if p.History, err = c.Assets.History(r.Context(), by.KeyID(), id, r.URL.Query().Get("offset")); err != nil {
		return err
	}
	if p.History.Older != "" {
		p.Older = historyPath(id, p.History.Older)
	}
	for _, change := range p.History.Changes {
		key := change.Author.Key
		if _, known := p.Names[key]; known {
			continue
		}
		k, err := c.Admin.Key(r.Context(), key)
		if err != nil && fault.KindOf(err) != fault.NotFound { // a key of a keys file is not in the store
			return err
		}
		p.Names[key] = k.Name
	}
	v := view{
		Title: "{}", Of: p.Asset.Number, Section: "log", By: by, Notice: notices[r.URL.Query().Get("notice")], Body: p,
	}
	return c.show(w, http.StatusOK, "asset", v)
}

// assetOf returns the id of the asset that the query of a request names.
func assetOf(r *http.Request) (string, error) {
	id := strings.TrimSpace(r.URL.Query().Get("id"))
	if !assetID.MatchString(id) {
		return "", fault.New(fault.Invalid, fault.Query, "id",
			"Send the id of an asset: 32 hexadecimal digits in lower case.")
	}
	return id, nil
}

// longestValue is the maximum number of bytes of a value that a page shows.
const longestValue = 400

// shorten returns the text of a JSON value, shortened for a page.
func shorten(value []byte) string {
	if len(value) <= longestValue {
		return string(value)
	}
	cut := longestValue
	for !utf8.RuneStart(value[cut]) {
		cut--
	}
	return string(value[:cut]) + "…"
}
