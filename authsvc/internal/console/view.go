package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
)

// view is what a page shows.
type view struct {
	Title   string
	Section string // of the navigation
	By      admin.Actor
	Notice  string
	Body    any
}

// MayChange tells whether who looks may do more than that.
func (v view) MayChange() bool { return v.By.Role == apikey.Operator }

// Holder is the name of the key that is signed in with, without its id.
func (v view) Holder() string {
	_, name, _ := strings.Cut(v.By.Name, " ")
	return name
}

// Notices, by the word for them in an address.
const (
	again     = "again"
	created   = "created"
	changed   = "changed"
	revoked   = "revoked"
	signedOut = "signed-out"
)

var notices = map[string]string{
	again:     "This form was sent before, and its change was made then. Nothing was done again. A secret is shown only once; rotate the key if it was lost.",
	created:   "Created.",
	changed:   "The changes are saved, and in force at every gateway within a second.",
	revoked:   "The key is revoked. Every gateway refuses it within a second.",
	signedOut: "You are signed out.",
}

// redirect sends the browser to a page that greets it with a notice.
func redirect(w http.ResponseWriter, r *http.Request, to, notice string) {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}
	http.Redirect(w, r, to+separator+"notice="+notice, http.StatusSeeOther)
}

func keyPath(id string) string { return "/console/keys/" + url.PathEscape(id) }

func brokerPath(name string) string {
	return "/console/broker?" + url.Values{"name": {name}}.Encode()
}

// subjectPath is the page of what an audit entry is about.
func subjectPath(subject string) string {
	kind, name, _ := strings.Cut(subject, " ")
	if kind == "broker" {
		return brokerPath(name)
	}
	return keyPath(name)
}

// views are the templates, by name of the page.
type views map[string]*template.Template

func parseViews() (views, error) {
	functions := template.FuncMap{
		"when":        when,
		"machine":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"levels":      func(levels string) string { return strings.Join(strings.Split(levels, ""), ", ") },
		"number":      grouped,
		"brokerPath":  brokerPath,
		"keyPath":     keyPath,
		"subjectPath": subjectPath,
	}
	base, err := template.New("").Funcs(functions).ParseFS(files, "templates/base.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("parse the console's pages: %w", err)
	}
	pages, err := files.ReadDir("templates")
	if err != nil {
		return nil, fmt.Errorf("parse the console's pages: %w", err)
	}
	parsed := views{}
	for _, page := range pages {
		own, err := base.Clone()
		if err != nil {
			return nil, fmt.Errorf("parse the console's pages: %w", err)
		}
		if own, err = own.ParseFS(files, path.Join("templates", page.Name())); err != nil {
			return nil, fmt.Errorf("parse the console's pages: %w", err)
		}
		parsed[strings.TrimSuffix(page.Name(), ".html")] = own
	}
	return parsed, nil
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// show answers with a page, whole or not at all.
func (c *Console) show(w http.ResponseWriter, status int, name string, v view) error {
	var text bytes.Buffer
	if err := c.views[name].ExecuteTemplate(&text, "page", v); err != nil {
		return fmt.Errorf("make page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(text.Bytes()) // a browser that has gone is no concern of ours
	return nil
}
