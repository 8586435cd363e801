package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
)

// The times of the start page.
const (
	expirySoon   = 30 * 24 * time.Hour // a key that expires within this time needs somebody
	unusedFor    = 7 * 24 * time.Hour  // so does a key that was not used in this time after its creation
	refusedSince = 24 * time.Hour      // and refused keys in this time
	lostSince    = 30 * 24 * time.Hour // and entries that the log lost in this time
)

// startPage is the body of the start page: everything that needs somebody.
type startPage struct {
	Groups  []startGroup
	Unknown []string // groups that could not be read
	Missing []string // things that this shape of the registry does not tell
}

// startGroup has things of one kind.
type startGroup struct {
	Title string
	Items []startItem
	All   string // path of a page with more
}

// startItem is one thing. Path leads to its page; "": there is none.
type startItem struct {
	Name, Path string
	Says       string
	Time       *time.Time
}

// showStart shows the start page. Each group stands alone: if one cannot be read, the page says so.
func (c *Console) showStart(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	p := startPage{}
	for _, group := range []struct {
		title, all string
		read       func(ctx context.Context, by admin.Actor) ([]startItem, error)
	}{
		{"Keys that expire soon", "/console/keys?sort=expires", c.expiring},
		{"Keys that were never used", "/console/keys?sort=used&reverse=1", c.unused},
		{"Refused keys in 24 hours", "/console/audit?action=" + audit.Refuse, c.refusedKeys},
		{"Stopped and failing webhooks", "/console/webhooks", c.troubledWebhooks},
		{"Public log", "/console/log", c.logTrouble},
		{"The store of keys went back in time", "/console/audit?action=" + adminapi.LogLost, c.lostEntries},
		{"Problems of the registry", "", c.problems},
	} {
		items, err := group.read(r.Context(), by)
		if err != nil {
			c.failures.Failed(fmt.Errorf("start page: %s: %w", group.title, err))
			p.Unknown = append(p.Unknown, group.title)
		}
		if len(items) > 0 {
			p.Groups = append(p.Groups, startGroup{group.title, items, group.all})
		}
	}
	if c.Assets == nil {
		p.Missing = append(p.Missing, "webhooks and the public log: this auth service has no --assets-url")
	}
	if c.Problems == nil {
		p.Missing = append(p.Missing, "the disk, the last backup and how other services are: ask the metrics of each service")
	}
	p.Missing = append(p.Missing, "requests that the rate limits refuse: gateways count them by policy, in their metrics")
	return c.show(w, http.StatusOK, "start", view{
		Title: "Needs attention", Section: "start", By: by, Notice: notices[r.URL.Query().Get("notice")], Body: p,
	})
}

// keyItems returns the first keys in an order, as long as the function `needs` returns an item's text.
func (c *Console) keyItems(
	ctx context.Context, order string, reverse bool, needs func(adminapi.Key) (says string, at *time.Time),
) (items []startItem, err error) {
	q := admin.KeyQuery{States: []string{adminapi.Active}, Order: order, Reverse: reverse, Limit: listed}
	found, err := c.Admin.FindKeys(ctx, q)
	for _, k := range found.Keys {
		if says, at := needs(k); says != "" {
			items = append(items, startItem{k.Name, keyPath(k.ID), says, at})
		}
	}
	return items, err
}

func (c *Console) expiring(ctx context.Context, _ admin.Actor) ([]startItem, error) {
	return c.keyItems(ctx, admin.ByExpiry, false, func(k adminapi.Key) (string, *time.Time) {
		if k.Expires == nil || k.Expires.Sub(c.Now()) > expirySoon {
			return "", nil
		}
		return "expires", k.Expires
	})
}

func (c *Console) unused(ctx context.Context, _ admin.Actor) ([]startItem, error) {
	return c.keyItems(ctx, admin.ByUsed, true, func(k adminapi.Key) (string, *time.Time) {
		if lastUse(k) != nil || c.Now().Sub(k.Created) < unusedFor {
			return "", nil
		}
		return "created", &k.Created
	})
}

// entries returns the newest entries of an action.
func (c *Console) entries(
	ctx context.Context, action string, since time.Duration, item func(auditEntry) startItem,
) (items []startItem, err error) {
	q := audit.Query{Action: action, Since: c.Now().Add(-since)}
	found, _, err := audit.Search(ctx, c.Admin, q, 0, adminapi.MaxFound)
	for _, e := range found {
		shown, err := viewEntry(e)
		if err != nil {
			return items, err
		}
		items = append(items, item(shown))
	}
	return items, err
}

func (c *Console) refusedKeys(ctx context.Context, _ admin.Actor) ([]startItem, error) {
	return c.entries(ctx, audit.Refuse, refusedSince, func(e auditEntry) startItem {
		says := ""
		for _, d := range e.Changes {
			says += d.Field + " " + d.After + " "
		}
		path := "/console/audit?" + url.Values{"who": {e.From}, "action": {audit.Refuse}}.Encode()
		return startItem{e.From, path, strings.TrimSpace(says), &e.Time}
	})
}

func (c *Console) lostEntries(ctx context.Context, _ admin.Actor) ([]startItem, error) {
	return c.entries(ctx, adminapi.LogLost, lostSince, func(e auditEntry) startItem {
		return startItem{strconv.FormatInt(e.Seq, 10), "/console/audit/check", "begins a new chain", &e.Time}
	})
}

func (c *Console) troubledWebhooks(ctx context.Context, by admin.Actor) (items []startItem, err error) {
	if c.Assets == nil {
		return nil, nil
	}
	found, _, err := c.Assets.Webhooks(ctx, by.KeyID(), "", "")
	for _, h := range found {
		if (h.State == "disabled" || h.State == "failing") && len(items) < listed {
			items = append(items, startItem{hostOf(h.URL), webhookPath(h.ID), cmp.Or(h.Reason, h.State), h.Succeeded})
		}
	}
	return items, err
}

// notSigned is the age from which a log that grew without a cosignature needs somebody.
const notSigned = time.Hour

// logTrouble finds a log that has witnesses and no new cosignature. A log without any is shown by the page of the log.
func (c *Console) logTrouble(ctx context.Context, _ admin.Actor) ([]startItem, error) {
	if c.Assets == nil {
		return nil, nil
	}
	state, empty, err := c.logState(ctx)
	if err != nil || empty {
		return nil, err
	}
	var last time.Time
	for _, s := range state.Signers {
		if s.At.After(last) {
			last = s.At
		}
	}
	switch {
	case len(state.Signers) < 2:
		return []startItem{{state.Origin, "/console/log", "no witness has cosigned the newest checkpoint", nil}}, nil
	case !last.IsZero() && state.Newest.Sub(last) > notSigned:
		return []startItem{{state.Origin, "/console/log", "last cosigned", &last}}, nil
	}
	return nil, nil
}

// problems returns the problems of this process, and the warnings of the store of keys.
func (c *Console) problems(ctx context.Context, _ admin.Actor) (items []startItem, err error) {
	var found []string
	if c.Problems != nil {
		found, err = c.Problems(ctx)
	}
	if c.Warnings != nil {
		found = append(found, c.Warnings(ctx)...)
	}
	for _, says := range found {
		items = append(items, startItem{Says: says})
	}
	return items, err
}
