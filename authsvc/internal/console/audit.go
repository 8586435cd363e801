package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// auditPage is the body of a page of the audit log, newest entry first.
type auditPage struct {
	Entries []auditEntry
	Newest  int64 // number of the log's last entry
	Older   int64 // the next page has the entries before this number; 0: this is the last page
	Begun   bool  // this is not the first page
}

type auditEntry struct {
	adminapi.Entry
	Name    string // of the key that the entry describes; "": of no key
	Changes []difference
}

// difference is a changed field.
type difference struct{ Field, Before, After string }

func (c *Console) listAudit(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	head, err := c.service.Head(r.Context())
	if err != nil {
		return err
	}
	before := head.Seq + 1
	text := r.URL.Query().Get("before")
	if text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return fault.New(fault.Invalid, fault.Query, "before", "Send the number of an entry.")
		}
		before = min(before, head.Seq+1)
	}
	after := max(0, before-1-listed)
	p := auditPage{Newest: head.Seq, Begun: text != ""}
	if after > 0 {
		p.Older = after + 1
	}
	if limit := int(before - 1 - after); limit > 0 {
		entries, err := c.service.Entries(r.Context(), after, limit)
		if err != nil {
			return err
		}
		for _, e := range slices.Backward(entries) {
			shown, err := viewEntry(e)
			if err != nil {
				return err
			}
			p.Entries = append(p.Entries, shown)
		}
	}
	return c.show(w, http.StatusOK, "audit", view{Title: "Audit log", Section: "audit", By: by, Body: p})
}

// viewEntry returns an entry with the fields that it changed.
func viewEntry(e adminapi.Entry) (auditEntry, error) {
	shown := auditEntry{Entry: e}
	var before, after map[string]json.RawMessage
	for text, into := range map[*json.RawMessage]*map[string]json.RawMessage{&e.Before: &before, &e.After: &after} {
		if len(*text) == 0 {
			continue
		}
		if err := json.Unmarshal(*text, into); err != nil {
			return shown, fmt.Errorf("read audit entry %d: %w", e.Seq, err)
		}
	}
	if _, ok := audit.KeyOf(e.Subject); ok {
		shown.Name = plain(after["name"])
	}
	both := maps.Clone(after)
	if both == nil {
		both = map[string]json.RawMessage{}
	}
	maps.Copy(both, before)
	for _, field := range slices.Sorted(maps.Keys(both)) {
		if field != "modified" && !bytes.Equal(before[field], after[field]) {
			shown.Changes = append(shown.Changes, difference{field, plain(before[field]), plain(after[field])})
		}
	}
	return shown, nil
}

// plain returns a JSON value for people: a string without its quotes.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

func (c *Console) checkAudit(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	found, err := c.service.Check(r.Context())
	if err != nil {
		return err
	}
	return c.show(w, http.StatusOK, "check", view{Title: "Audit log checked", Section: "audit", By: by, Body: found})
}
