package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

const listed = 25 // keys, brokers or entries on a page

// search is what a list is looked through for.
type search struct {
	Text, Broker, State string
	Next                string // path of the next page; "": this is the last
	Begun               bool   // this is not the first page
}

func (s search) Narrow() bool { return s.Text != "" || s.Broker != "" || s.State != "" }

func searchOf(r *http.Request) (search, admin.Filter) {
	q := r.URL.Query()
	s := search{Text: strings.TrimSpace(q.Get("q")), Broker: q.Get("broker"), State: q.Get("state"), Begun: q.Get("after") != ""}
	return s, admin.Filter{Text: s.Text, Broker: s.Broker, State: s.State, After: q.Get("after"), Limit: listed}
}

// nextPath is where the same search goes on; "" if nowhere.
func nextPath(r *http.Request, after string) string {
	if after == "" {
		return ""
	}
	q := r.URL.Query()
	q.Set("after", after)
	q.Del("notice")
	return r.URL.Path + "?" + q.Encode()
}

type keyList struct {
	Search search
	States []string
	Keys   []adminapi.Key
}

func (c *Console) listKeys(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	s, filter := searchOf(r)
	keys, next, err := c.service.Keys(r.Context(), filter)
	if err != nil {
		return err
	}
	s.Next = nextPath(r, next)
	return c.show(w, http.StatusOK, "keys", view{Title: "Keys", Section: "keys", By: by, Body: keyList{
		Search: s, Keys: keys, States: adminapi.States(),
	}})
}

type keyPage struct {
	Key    adminapi.Key
	Secret string // shown in the answer to the form that made it, and never again
	Chart  chart
	Spans  []int
}

// Rates are the key's limits in words.
func (p keyPage) Rates() []rate { return rates(p.Key.Limits) }

// Live tells whether the key may still be changed.
func (p keyPage) Live() bool { return p.Key.Revoked == nil }

const usualSpan = 30 // days

func (c *Console) showKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	k, err := c.service.Key(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	days := usualSpan
	if text := r.URL.Query().Get("days"); text != "" {
		if days, err = strconv.Atoi(text); err != nil {
			return fault.New(fault.Invalid, fault.Query, "days", "A number of days is needed.")
		}
	}
	return c.keyPage(w, r, by, http.StatusOK, keyPage{Key: k}, days)
}

func (c *Console) keyPage(w http.ResponseWriter, r *http.Request, by admin.Actor, status int, p keyPage, days int) error {
	counts, err := c.service.Usage(r.Context(), p.Key.ID, days)
	if err != nil {
		return err
	}
	p.Chart, p.Spans = newChart(counts, days, c.now()), []int{7, usualSpan, 90, 365}
	return c.show(w, status, "key", view{Title: p.Key.Name, Section: "keys", By: by, Notice: notices[r.URL.Query().Get("notice")], Body: p})
}

// keyForm is the form that makes or changes a key.
type keyForm struct {
	Form    form
	Key     adminapi.Key // the zero one when a key is made
	Roles   []role
	Brokers []adminapi.Broker // to choose from
}

type role struct{ Name, Told string }

var (
	registryRoles = []role{{"broker", "Broker: creates assets, changes its own"}, {"concierge", "Concierge: takes assets through verification"}, {"administrator", "Administrator: may do everything in the registry"}}
	consoleRoles  = []role{{"operator", "Operator: administers brokers and keys, here"}, {"auditor", "Auditor: reads everything here, changes nothing"}}
)

// The fields of the forms that make a key, change it and give it a new secret.
var (
	newKeyFields  = append([]string{"broker"}, editKeyFields...)
	editKeyFields = []string{
		"name", "role", "levels", "test", "expires", "limits",
		limitField + "list", limitField + "read", limitField + "write", "allow",
	}
	rotateFields = []string{"grace"}
)

func (c *Console) showNewKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	f, err := c.newForm(r.Context())
	if err != nil {
		return err
	}
	f.Values.Set("role", "broker")
	f.Values.Set("broker", r.URL.Query().Get("broker"))
	return c.newKeyPage(w, r, by, f)
}

const offered = 500 // brokers to choose from; any other can be typed

func (c *Console) newKeyPage(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	brokers, _, err := c.service.Brokers(r.Context(), admin.Filter{Limit: offered})
	if err != nil {
		return err
	}
	return c.show(w, statusOf(f), "key-form", view{Title: "New key", Section: "keys", By: by, Body: keyForm{Form: f, Roles: append(registryRoles[:3:3], consoleRoles...), Brokers: brokers}})
}

func (c *Console) createKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	var unread problems.List
	unknown(r, newKeyFields, &unread)
	settings := keySettings(r.PostForm, adminapi.KeySettings{}, &unread)
	n := adminapi.NewKey{Broker: r.PostForm.Get("broker"), KeySettings: settings}
	k, secret, err := c.service.CreateKey(r.Context(), by, n, unread.Details()...)
	if f, ok := refused(r, err, newKeyFields); ok {
		return c.newKeyPage(w, r, by, f)
	}
	if err != nil {
		return err
	}
	return c.showSecret(w, r, by, "Key created", k, secret)
}

// showSecret answers a form with a new secret: in this answer alone, which no
// cache keeps, and which the same form sent again does not get.
func (c *Console) showSecret(w http.ResponseWriter, r *http.Request, by admin.Actor, title string, k adminapi.Key, secret string) error {
	return c.show(w, http.StatusOK, "secret", view{Title: title, Section: "keys", By: by, Body: keyPage{Key: k, Secret: secret}})
}

func (c *Console) showEditKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	k, err := c.changeable(r)
	if err != nil {
		return err
	}
	f, err := c.newForm(r.Context())
	if err != nil {
		return err
	}
	was, err := unchanged(k.KeySettings)
	if err != nil {
		return err
	}
	v := f.Values
	v.Set("was", was)
	v.Set("name", k.Name)
	v.Set("role", k.Role)
	v["levels"] = strings.Split(k.Levels, "")
	if k.Test {
		v.Set("test", "yes")
	}
	if k.Expires != nil {
		v.Set("expires", stamp(*k.Expires))
	}
	for _, rate := range rates(k.Limits) {
		v.Set(limitField+rate.Class, rate.Told)
	}
	v.Set("allow", strings.Join(k.Allow, "\n"))
	return c.editKeyPage(w, by, f, k)
}

// changeable loads the key of a request, which must not be revoked.
func (c *Console) changeable(r *http.Request) (adminapi.Key, error) {
	k, err := c.service.Key(r.Context(), r.PathValue("id"))
	if err == nil && k.Revoked != nil {
		err = fault.New(fault.Conflict, fault.URL, "key", "The key is revoked, for good. Create another.")
	}
	return k, err
}

func (c *Console) editKeyPage(w http.ResponseWriter, by admin.Actor, f form, k adminapi.Key) error {
	roles := registryRoles
	if k.Broker == "" {
		roles = consoleRoles
	}
	return c.show(w, statusOf(f), "key-form", view{Title: "Edit " + k.Name, Section: "keys", By: by, Body: keyForm{Form: f, Key: k, Roles: roles}})
}

func (c *Console) editKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	k, err := c.changeable(r)
	if err != nil {
		return err
	}
	_, err = c.service.ChangeKey(r.Context(), by, k.ID, func(s *adminapi.KeySettings) error {
		if err := mustBe(*s, r.PostForm.Get("was")); err != nil {
			return err
		}
		var unread problems.List
		unknown(r, editKeyFields, &unread)
		*s = keySettings(r.PostForm, *s, &unread)
		return unread.Err()
	})
	if f, ok := refused(r, err, editKeyFields); ok {
		return c.editKeyPage(w, by, f, k)
	}
	if err != nil {
		return err
	}
	redirect(w, r, keyPath(k.ID), changed)
	return nil
}

func (c *Console) showRotateKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	return c.confirm(w, r, by, "rotate", "Rotate ", url.Values{"grace": {"24h"}})
}

func (c *Console) showRevokeKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	return c.confirm(w, r, by, "revoke", "Revoke ", nil)
}

// confirm shows a form that asks whether something is to be done to a key.
func (c *Console) confirm(w http.ResponseWriter, r *http.Request, by admin.Actor, page, title string, values url.Values) error {
	k, err := c.changeable(r)
	if err != nil {
		return err
	}
	f, err := c.newForm(r.Context())
	if err != nil {
		return err
	}
	for name, value := range values {
		f.Values[name] = value
	}
	return c.confirmPage(w, by, page, title, f, k)
}

func (c *Console) confirmPage(w http.ResponseWriter, by admin.Actor, page, title string, f form, k adminapi.Key) error {
	return c.show(w, statusOf(f), page, view{Title: title + k.Name, Section: "keys", By: by, Body: keyForm{Form: f, Key: k}})
}

func (c *Console) rotateKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	var unread problems.List
	unknown(r, rotateFields, &unread)
	grace, err := time.ParseDuration(r.PostForm.Get("grace"))
	if err != nil {
		unread.Add("grace", "Send a length of time such as 24h or 30m.")
	}
	k, secret, err := c.service.RotateKey(r.Context(), by, r.PathValue("id"), grace, unread.Details()...)
	if f, ok := refused(r, err, rotateFields); ok {
		k, loading := c.changeable(r)
		if loading != nil {
			return loading
		}
		return c.confirmPage(w, by, "rotate", "Rotate ", f, k)
	}
	if err != nil {
		return err
	}
	return c.showSecret(w, r, by, "New secret", k, secret)
}

func (c *Console) revokeKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	var unread problems.List
	unknown(r, nil, &unread)
	if err := unread.Err(); err != nil {
		return err
	}
	k, err := c.service.RevokeKey(r.Context(), by, r.PathValue("id"))
	if err != nil {
		return err
	}
	redirect(w, r, keyPath(k.ID), revoked)
	return nil
}
