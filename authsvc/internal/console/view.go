package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
)

// view is the data of a page.
type view struct {
	Title   string // in English; {} stands for the field Of
	Of      string
	Section string // the section of the navigation to which the page belongs
	By      admin.Actor
	Notice  string
	Body    any
	Sought  string // text of the field that finds everything
	HasLog  bool   // the console has pages about the public log and webhooks; set by the method `show`
}

// MayChange reports whether the user may change anything.
func (v view) MayChange() bool { return v.By.Role == apikey.Operator }

// Holder returns the name of the user's key or of the person, without the id. A person without a name has the id.
func (v view) Holder() string {
	id, name, _ := strings.Cut(v.By.Name, " ")
	return cmp.Or(name, id)
}

// The names of notices in a URL.
const (
	again     = "again"
	created   = "created"
	changed   = "changed"
	revoked   = "revoked"
	lonely    = "unconfirmed"
	signedOut = "signed-out"

	webhookAgain   = "webhook-again"
	webhookChanged = "webhook-changed"
	removed        = "webhook-removed"
	brokerRemoved  = "broker-removed"
	sessionEnded   = "session-ended"
)

var notices = map[string]string{
	again: "This form was sent before, and its change was made then. Nothing was done again. " +
		"A secret is shown only once. Rotate the key if you lost it.",
	created: "Created.",
	changed: "The changes are saved. Every gateway applies them within a second.",
	revoked: "The key is revoked. Every gateway refuses it within a second.",
	lonely: "The change is made and in force. But no second place has confirmed it yet, so it may be lost if the store " +
		"of keys fails now. The log of authsvc says which place. Look at the key again in a minute.",
	signedOut: "You are signed out.",

	// The entry of the audit log is written before the action, so the action may have failed.
	webhookAgain: "This form was sent before, and nothing was done again. The first attempt may have failed: " +
		"this page shows the webhook as it is now. If its change is not there, make it again from here.",
	webhookChanged: "Done.",
	removed:        "The webhook is removed.",
	brokerRemoved:  "The broker is removed.",
	sessionEnded:   "The session is ended.",
}

// noticeOf returns a notice, or another one if a change of the actor is in danger.
func noticeOf(by admin.Actor, notice string) string {
	if by.Warnings != nil && len(*by.Warnings) > 0 {
		return lonely
	}
	return notice
}

// redirect sends the browser to a page with a notice. It returns no error.
func redirect(w http.ResponseWriter, r *http.Request, to, notice string) error {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}
	http.Redirect(w, r, to+separator+"notice="+notice, http.StatusSeeOther)
	return nil
}

func keyPath(id string) string { return "/console/keys/" + url.PathEscape(id) }

func brokerPath(name string) string {
	return "/console/broker?" + url.Values{"name": {name}}.Encode()
}

// subjectPath returns the path of the page about the subject of an audit entry.
func subjectPath(subject string) string {
	if name, ok := audit.BrokerOf(subject); ok {
		return brokerPath(name)
	}
	if id, ok := audit.WebhookOf(subject); ok {
		return webhookPath(id)
	}
	if id, ok := audit.AssetOf(subject); ok {
		return historyPath(id, "")
	}
	if id, ok := audit.KeyOf(subject); ok {
		return keyPath(id)
	}
	return "/console/audit?" + url.Values{"about": {subject}}.Encode() // a file or the log, which have no page
}

// acts has the actions of the audit log in words.
var acts = map[string]string{
	audit.CreateBroker: "created the broker", audit.ChangeBroker: "changed the broker",
	audit.RemoveBroker: "removed the broker", audit.CreateKey: "created the key", audit.ChangeKey: "changed the key",
	audit.RotateKey: "rotated the key", audit.RevokeKey: "revoked the key",
	audit.RecoverAsset: "recovered the tokens of", audit.ReadAsset: "looked at the asset",
	audit.RemoveFile: "took down the file", audit.EndAgain: "ended again the right of",
	adminapi.LogLost: "lost entries of", audit.AcceptKeys: "accepted the keys as they are, in",
	audit.BeginSession: "signed in", audit.EndSession: "ended a session", audit.Refuse: "was refused",
	audit.ExportLog:                   "exported",
	string(assetclient.StopWebhook):   "stopped the webhook",
	string(assetclient.ResumeWebhook): "resumed the webhook",
	string(assetclient.ReplayWebhook): "replayed the webhook",
	string(assetclient.RemoveWebhook): "removed the webhook",
}

// act returns an action of the audit log in words.
func act(action string) string { return cmp.Or(acts[action], action) }

// views has the templates; the keys are the names of the pages.
type views map[string]*template.Template

// parseViews returns the pages in a language. It panics if one is malformed, because they are part of the program.
func parseViews(language string, now func() time.Time) views {
	functions := template.FuncMap{
		"when":        when,
		"exactly":     exactly,
		"day":         func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
		"flat":        flat,
		"lastUse":     lastUse,
		"brokerTitle": brokerTitle,
		"machine":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"number":      grouped,
		"brokerPath":  brokerPath,
		"keyPath":     keyPath,
		"webhookPath": webhookPath,
		"host":        hostOf,
		"duration":    func(seconds int64) string { return (time.Duration(seconds) * time.Second).String() },
		"subjectPath": subjectPath,
		"shorten":     func(value json.RawMessage) string { return shorten(value) },
	}
	base := template.Must(template.New("").Funcs(functions).Funcs(wordsOf(language, now)).
		ParseFS(files, "templates/base.html", "templates/parts.html"))
	pages, _ := fs.Glob(files, "templates/*.html") // the only error is that of a malformed pattern
	parsed := views{}
	for _, page := range pages {
		parsed[strings.TrimSuffix(path.Base(page), ".html")] = template.Must(template.Must(base.Clone()).ParseFS(files, page))
	}
	return parsed
}

// hostOf returns the host of an address, or the whole text if it is not an address.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// exactly returns a time with its seconds.
func exactly(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// The function `ago` returns how long ago something was, in the largest whole unit.
func ago(past time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		switch n := int64(past / unit.size); {
		case n == 1:
			return "1 " + unit.name + " ago"
		case n > 1:
			return grouped(n) + " " + unit.name + "s ago"
		}
	}
	return "just now"
}

// labels has the names of some fields, as people see them. The function `label` makes the names of all other
// fields.
var labels = map[string]string{"allow": "Addresses", "levels": "Accreditation levels", "confirm": "Name of the key"}

// label returns the name of a form's field for people: "Limit read" for "limit-read".
func label(field string) string {
	if text, ok := labels[field]; ok || field == "" {
		return text
	}
	return strings.ToUpper(field[:1]) + strings.ReplaceAll(field[1:], "-", " ")
}

// show writes a page, either completely or not at all.
func (c *Console) show(w http.ResponseWriter, status int, name string, v view) error {
	v.HasLog = c.Assets != nil
	language := w.Header().Get("Content-Language")
	v.Title, _ = in(language, v.Title, v.Of)
	var text bytes.Buffer
	if err := c.views[language][name].ExecuteTemplate(&text, "page", v); err != nil {
		return fmt.Errorf("make page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(text.Bytes()) // an error means that the browser has closed the connection
	return nil
}

// flat removes the characters that change the direction of text. Elsewhere on a page, the element <bdi> confines
// their effect to one text, but the title of a page cannot have elements.
func flat(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}
