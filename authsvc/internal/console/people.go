package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// begin notes a sign-in in the audit log, and then gives the browser the session. Without an entry nobody signs in.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, by admin.Actor, s session) error {
	err := c.Admin.Witness(r.Context(), by, audit.BeginSession, audit.LogSubject, audit.Session{ID: s.ID})
	if err != nil {
		return fmt.Errorf("note a sign-in: %w", err)
	}
	return c.remember(w, r, s)
}

// end ends a session on the server, and notes that.
func (c *Console) end(r *http.Request, by admin.Actor, id string) error {
	if err := c.Ended.EndSession(r.Context(), id, longest+clockError); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return c.Admin.Witness(r.Context(), by, audit.EndSession, audit.LogSubject, audit.Session{ID: id})
}

// sessionList is the body of the page of sessions.
type sessionList struct {
	list
	Sessions []openSession
	Older    string // path of the page with older sessions; "": there are none
	Once     string // identifies the forms of the page; "": the user is an auditor
}

// openSession is a session that was not ended. It may be over, because its user has made no request.
type openSession struct {
	ID           string
	Who, KeyID   string
	From         string
	Begun, Until time.Time
}

// listSessions shows the sessions of the last hours, which it takes from the audit log.
func (c *Console) listSessions(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	l, err := listOf(r)
	if err != nil {
		return err
	}
	before, err := beforeOf(r)
	if err != nil {
		return err
	}
	q := audit.Query{Action: audit.BeginSession, Since: c.Now().Add(-longest)}
	found, older, err := audit.Search(r.Context(), c.Admin, q, before, listed)
	if err != nil {
		return err
	}
	body := sessionList{list: l}
	if older > 0 {
		body.Older = l.with("before", strconv.FormatInt(older, 10))
	}
	for _, e := range found {
		var s audit.Session
		if err := json.Unmarshal(e.After, &s); err != nil {
			return fmt.Errorf("read audit entry %d: %w", e.Seq, err)
		}
		if ended, err := c.Ended.SessionEnded(r.Context(), s.ID); err != nil || ended {
			if err != nil {
				return err
			}
			continue
		}
		shown, err := viewEntry(e)
		if err != nil {
			return err
		}
		body.Sessions = append(body.Sessions, openSession{
			s.ID, shown.By, shown.ByID, e.From, e.Time, e.Time.Add(longest),
		})
	}
	v := view{Title: "Sessions", Section: "audit", By: by, Notice: notices[r.URL.Query().Get("notice")]}
	if v.MayChange() {
		f, err := c.newForm(r.Context())
		if err != nil {
			return err
		}
		body.Once = f.Once()
	}
	v.Body = body
	return c.show(w, http.StatusOK, "sessions", v)
}

// beforeOf returns the number of the entry before which a page of the audit log begins; 0: at the end.
func beforeOf(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("before")
	before, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
	if err != nil || before < 0 || before == 0 && text != "" {
		return 0, fault.New(fault.Invalid, fault.Query, "before", "Send the number of an entry.")
	}
	return before, nil
}

// endSession ends the session of the form's user or of another one.
func (c *Console) endSession(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	id := r.PathValue("id")
	if len(id) > len(digest(nil)) {
		return errNoPage
	}
	if ended, err := c.Ended.SessionEnded(r.Context(), id); err != nil {
		return err
	} else if !ended {
		if err := c.end(r, by, id); err != nil {
			return err
		}
	}
	return redirect(w, r, "/console/sessions", sessionEnded)
}

// noteReading notes that somebody sees an asset with its hidden fields, or a draft.
func (c *Console) noteReading(r *http.Request, by admin.Actor, a adminapi.Asset) error {
	seen := struct {
		Broker string `json:"broker"`
		Status string `json:"status"`
	}{a.Owner, a.Status}
	return c.Admin.Witness(r.Context(), by, audit.ReadAsset, audit.OfAsset(a.ID), seen)
}
