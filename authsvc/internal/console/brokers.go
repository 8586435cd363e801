package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

type brokerList struct {
	list
	Brokers []adminapi.Broker
}

func (c *Console) listBrokers(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	l, err := listOf(r, "q")
	if err != nil {
		return err
	}
	found, err := c.Admin.FindBrokers(r.Context(), strings.TrimSpace(l.Text()), l.Skip, listed)
	if err != nil {
		return err
	}
	l.Skip, l.Shown, l.Total, l.Cut = found.Skip, len(found.Brokers), found.Total, found.Cut
	body := brokerList{l, found.Brokers}
	return c.show(w, http.StatusOK, "brokers", view{
		Title: "Brokers", Section: "brokers", By: by, Notice: notices[r.URL.Query().Get("notice")], Body: body,
	})
}

// brokerPage is the body of a page about a broker: either its newest keys and its usage, or the form that
// changes it.
type brokerPage struct {
	Broker  adminapi.Broker // zero for a new broker
	Keys    brokerKeys      // the keys that are not revoked
	Revoked brokerKeys
	Usage   usage
	Form    form

	HasAssets bool         // the console knows the asset services; else the next fields are empty
	States    []assetState // the states in which the broker has assets
	Assets    []adminapi.Asset
	Webhooks  []assetclient.Webhook
	Hooks     string // path of the list of all these webhooks; "": Webhooks has all of them
}

// assetState is the number of a broker's assets in a state.
type assetState struct {
	State string
	Count int64
	More  bool // there are more than Count
}

// assetStates are the states of assets (docs/contract.md, "States").
var assetStates = []string{"draft", "pending", "verification", "active", "complete", "deleted"}

const (
	maxCounted  = 999 // maximum number of a broker's assets in one state that its page counts
	shownAssets = 10  // and of assets and webhooks that it lists
)

// readAssets reads the assets and webhooks of a broker.
func (p *brokerPage) readAssets(ctx context.Context, from Assets, by admin.Actor) error {
	for _, state := range assetStates {
		found, more, err := from.Owned(ctx, by.KeyID(), p.Broker.Name, state, maxCounted, false)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			p.States = append(p.States, assetState{state, int64(len(found)), more})
		}
	}
	found, _, err := from.Owned(ctx, by.KeyID(), p.Broker.Name, "", shownAssets, true)
	if err != nil {
		return err
	}
	for _, a := range found {
		if by.Role == apikey.Operator || a.Status != "draft" {
			p.Assets = append(p.Assets, a)
		}
	}
	hooks, next, err := from.Webhooks(ctx, by.KeyID(), p.Broker.Name, "")
	p.Webhooks = hooks[:min(len(hooks), shownAssets)]
	if next != "" || len(hooks) > shownAssets {
		p.Hooks = "/console/webhooks?" + url.Values{"broker": {p.Broker.Name}}.Encode()
	}
	p.HasAssets = err == nil
	return err
}

// brokerKeys has the newest keys of a broker that are in some states.
type brokerKeys struct {
	Rows  keyRows
	Total int
	All   string // path of the list of all these keys; "": Rows has all of them
}

// brokerTitle returns the title of a broker, or its name if it has none.
func brokerTitle(b adminapi.Broker) string { return cmp.Or(b.Title, b.Name) }

func (c *Console) showBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	b, err := c.Admin.Broker(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	days, err := daysOf(r)
	if err != nil {
		return err
	}
	body := brokerPage{Broker: b}
	if body.Keys, err = c.brokerKeys(r.Context(), b.Name, ""); err != nil {
		return err
	}
	if body.Revoked, err = c.brokerKeys(r.Context(), b.Name, adminapi.Revoked); err != nil {
		return err
	}
	if c.Assets != nil {
		err := body.readAssets(r.Context(), c.Assets, by)
		if err != nil && fault.KindOf(err) != fault.Unavailable { // the page shows the keys even if asset services are away
			return err
		}
	}
	counts, cut, err := c.Admin.BrokerUsage(r.Context(), b.Name, days)
	if err != nil {
		return err
	}
	body.Usage = newUsage(counts, days, c.Now(), "/console/broker", url.Values{"name": {b.Name}},
		7, usualSpan, admin.MaxSummedDays)
	body.Usage.Cut = cut
	return c.show(w, http.StatusOK, "broker", view{
		Title: "{}", Of: brokerTitle(b), Section: "brokers", By: by, Notice: notices[r.URL.Query().Get("notice")], Body: body,
	})
}

// brokerKeys returns the newest keys of a broker. The argument `state` selects the keys, in the same way as the query
// parameter of this name.
func (c *Console) brokerKeys(ctx context.Context, broker, state string) (brokerKeys, error) {
	found, err := c.Admin.FindKeys(ctx, admin.KeyQuery{Broker: broker, States: statesOf(state), Limit: listed})
	if err != nil {
		return brokerKeys{}, err
	}
	columns := slices.DeleteFunc(keyColumns(), func(c column) bool { return c.Order == admin.ByBroker })
	keys := brokerKeys{Rows: keyRows{columns, found.Keys}, Total: found.Total}
	if found.Total > len(found.Keys) {
		keys.All = list{path: "/console/keys", query: url.Values{"broker": {broker}}}.with("state", state)
	}
	return keys, nil
}

func (c *Console) showNewBroker(w http.ResponseWriter, _ *http.Request, by admin.Actor, f form) error {
	return c.brokerForm(w, by, f, adminapi.Broker{})
}

func (c *Console) brokerForm(w http.ResponseWriter, by admin.Actor, f form, of adminapi.Broker) error {
	title := "New broker"
	if of.Name != "" {
		title = "Edit {}"
	}
	body := brokerPage{Broker: of, Form: f}
	return c.show(w, statusOf(f), "broker-form", view{
		Title: title, Of: brokerTitle(of), Section: "brokers", By: by, Body: body,
	})
}

// The fields of the forms that create and change a broker.
var (
	newBrokerFields  = []string{"name", "similar", "title", "contact"}
	editBrokerFields = []string{"title", "contact", "blocked"}
)

func (c *Console) createBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	unread := unknown(r, newBrokerFields)
	n := adminapi.NewBroker{
		Name: strings.TrimSpace(r.PostForm.Get("name")), Similar: r.PostForm.Get("similar") != "",
		BrokerSettings: brokerSettings(r),
	}
	b, err := c.Admin.CreateBroker(r.Context(), by, n, unread.Details()...)
	return settle(r, err, newBrokerFields,
		func(f form) error { return c.brokerForm(w, by, f, adminapi.Broker{}) },
		func() error { return redirect(w, r, brokerPath(b.Name), created) })
}

func brokerSettings(r *http.Request) adminapi.BrokerSettings {
	return adminapi.BrokerSettings{
		Title:   strings.TrimSpace(r.PostForm.Get("title")),
		Contact: strings.TrimSpace(r.PostForm.Get("contact")),
		Blocked: r.PostForm.Get("blocked") != "",
	}
}

func settingsOf(b adminapi.Broker) adminapi.BrokerSettings {
	return adminapi.BrokerSettings{
		Title: b.Title, Contact: b.Contact, Blocked: b.Blocked, Raise: b.Raise, RaisedUntil: b.RaisedUntil,
	}
}

func (c *Console) showEditBroker(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	b, err := c.Admin.Broker(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	was, err := unchanged(settingsOf(b))
	if err != nil {
		return err
	}
	f.Values.Set("was", was)
	f.Values.Set("title", b.Title)
	f.Values.Set("contact", b.Contact)
	if b.Blocked {
		f.Values.Set("blocked", "yes")
	}
	return c.brokerForm(w, by, f, b)
}

func (c *Console) editBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	b, err := c.Admin.Broker(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	_, err = c.Admin.ChangeBroker(r.Context(), by, b.Name, func(s *adminapi.BrokerSettings) error {
		if err := mustBe(*s, r.PostForm.Get("was")); err != nil {
			return err
		}
		unread := unknown(r, editBrokerFields)
		raise, until := s.Raise, s.RaisedUntil // no form changes these two
		*s = brokerSettings(r)
		s.Raise, s.RaisedUntil = raise, until
		return unread.Err()
	})
	return settle(r, err, editBrokerFields,
		func(f form) error { return c.brokerForm(w, by, f, b) },
		func() error { return redirect(w, r, brokerPath(b.Name), noticeOf(by, changed)) })
}

func (c *Console) showRemoveBroker(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	b, err := c.Admin.Broker(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	return c.show(w, http.StatusOK, "remove-broker", view{
		Title: "Remove {}", Of: brokerTitle(b), Section: "brokers", By: by, Body: brokerPage{Broker: b, Form: f},
	})
}

func (c *Console) removeBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	if _, err := c.Admin.RemoveBroker(r.Context(), by, r.URL.Query().Get("name")); err != nil {
		return err
	}
	return redirect(w, r, "/console/brokers", brokerRemoved)
}
