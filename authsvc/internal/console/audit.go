package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/fault"
)

// auditPage is the body of a page of the audit log, newest entry first.
type auditPage struct {
	list        // the search; pages of the audit log have no numbers
	Entries     []auditEntry
	Older       string // path of the page with older entries; "": there are none
	Begun       bool   // the page begins with older entries, not with the newest
	Actions     []string
	Days        []option
	CSV, NDJSON string // paths of exports of the search
	// If the search stopped early, ReadMost is the number of entries that it had read, and Until is the number of the
	// entry before which it stopped. Otherwise both are 0.
	ReadMost, Until int64
}

// Narrow reports whether the search restricts the entries.
func (p auditPage) Narrow() bool { return len(p.query) > 0 }

// Newest returns the path of the search's first page.
func (p auditPage) Newest() string { return p.with("", "") }

// Value returns a parameter of the search.
func (p auditPage) Value(name string) string { return p.query.Get(name) }

// option is a choice of an HTML select.
type option struct{ Value, Label string }

// auditDays returns the spans of time that an operator can choose.
func auditDays() []option {
	return []option{{"1", "24 hours"}, {"7", "7 days"}, {"30", "30 days"}, {"90", "90 days"}, {"365", "a year"}}
}

// The parameters of a search in the audit log.
var auditParameters = []string{"who", "about", "broker", "action", "days"}

// maxDays is the maximum number of days that a search may go back.
const maxDays = 36_500

// auditQuery reads a search from the parameters of a request.
func (c *Console) auditQuery(q url.Values) (audit.Query, error) {
	query := audit.Query{
		Who: strings.TrimSpace(q.Get("who")), About: strings.TrimSpace(q.Get("about")),
		Broker: strings.TrimSpace(q.Get("broker")), Action: q.Get("action"),
	}
	if text := q.Get("days"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil || days < 1 || days > maxDays {
			return query, fault.New(fault.Invalid, fault.Query, "days", "Send a number of days.")
		}
		query.Since = c.Now().Add(-time.Duration(days) * 24 * time.Hour)
	}
	return query, nil
}

// actions returns every action that an entry of the audit log can name.
func actions() []string {
	all := audit.Actions()
	for _, action := range assetclient.WebhookActions() {
		all = append(all, string(action))
	}
	return all
}

func (c *Console) listAudit(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	l, err := listOf(r, auditParameters...)
	if err != nil {
		return err
	}
	query, err := c.auditQuery(l.query)
	if err != nil {
		return err
	}
	before, err := beforeOf(r)
	if err != nil {
		return err
	}
	entries, older, err := audit.Search(r.Context(), c.Admin, query, before, listed)
	if err != nil {
		return err
	}
	p := auditPage{
		list: l, Begun: before > 0, Actions: actions(), Days: auditDays(),
		CSV: exportPath("csv", l.query), NDJSON: exportPath("ndjson", l.query),
	}
	if older > 0 {
		p.Older = l.with("before", strconv.FormatInt(older, 10))
		if len(entries) < listed {
			p.ReadMost, p.Until = audit.MaxRead, older
		}
	}
	for _, e := range entries {
		shown, err := viewEntry(e)
		if err != nil {
			return err
		}
		p.Entries = append(p.Entries, shown)
	}
	return c.show(w, http.StatusOK, "audit", view{Title: "Audit log", Section: "audit", By: by, Body: p})
}

func (c *Console) checkAudit(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	found, err := c.Checker.Check(r.Context())
	if err != nil {
		return err
	}
	return c.show(w, http.StatusOK, "check", view{Title: "Audit log checked", Section: "audit", By: by, Body: found})
}
