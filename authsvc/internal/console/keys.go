package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

const listed = 25 // most keys, brokers or entries of a page

// search is the search form of a list.
type search struct {
	Text, Broker, State string
	Next                string // path of the next page; "": this is the last one
	Begun               bool   // this is not the first page
}

// Narrow reports whether the search leaves anything out.
func (s search) Narrow() bool { return s.Text != "" || s.Broker != "" || s.State != "" }

func searchOf(r *http.Request) (search, admin.Filter) {
	q := r.URL.Query()
	after := q.Get("after")
	s := search{Text: strings.TrimSpace(q.Get("q")), Broker: q.Get("broker"), State: q.Get("state"), Begun: after != ""}
	return s, admin.Filter{Text: s.Text, Broker: s.Broker, State: s.State, After: after, Limit: listed}
}

// nextPath returns the path of the search's next page; "" if there is none.
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
	Secret string // only in the response to the form that made it
	Chart  chart
	Spans  []int
}

// Rates returns the limits of the key as text.
func (p keyPage) Rates() []rate { return rates(p.Key.Limits) }

// Live reports whether the key can still change.
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
			return fault.New(fault.Invalid, fault.Query, "days", "Send a number of days.")
		}
	}
	return c.keyPage(w, r, by, k, days)
}

// keyPage shows a key with its usage of the last days.
func (c *Console) keyPage(
	w http.ResponseWriter, r *http.Request, by admin.Actor, k adminapi.Key, days int,
) error {
	counts, err := c.service.Usage(r.Context(), k.ID, days)
	if err != nil {
		return err
	}
	return c.show(w, http.StatusOK, "key", view{
		Title: k.Name, Section: "keys", By: by, Notice: notices[r.URL.Query().Get("notice")],
		Body: keyPage{Key: k, Chart: newChart(counts, days, c.now()), Spans: []int{7, usualSpan, 90, 365}},
	})
}

// keyForm is the body of a page with a form that creates or changes a key.
type keyForm struct {
	Form    form
	Key     adminapi.Key // zero for a new key
	Roles   []role
	Brokers []adminapi.Broker // to choose from
}

type role struct{ Name, Told string }

var (
	registryRoles = []role{
		{"broker", "Broker: creates assets and changes its own"},
		{"concierge", "Concierge: verifies assets"},
		{"administrator", "Administrator: may do everything in the registry"},
	}
	consoleRoles = []role{
		{"operator", "Operator: administers brokers and keys, in this console"},
		{"auditor", "Auditor: reads everything in this console, changes nothing"},
	}
)

// The fields of the forms that create, change and rotate a key.
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

const offered = 500 // brokers that the form suggests; users can type any other

func (c *Console) newKeyPage(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	brokers, _, err := c.service.Brokers(r.Context(), admin.Filter{Limit: offered})
	if err != nil {
		return err
	}
	body := keyForm{Form: f, Roles: slices.Concat(registryRoles, consoleRoles), Brokers: brokers}
	return c.show(w, statusOf(f), "key-form", view{Title: "New key", Section: "keys", By: by, Body: body})
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
	return c.showSecret(w, by, "Key created", keyPage{Key: k, Secret: secret})
}

// showSecret shows a new secret. No cache keeps this response, and a repeated form does
// not get it.
func (c *Console) showSecret(w http.ResponseWriter, by admin.Actor, title string, p keyPage) error {
	return c.show(w, http.StatusOK, "secret", view{Title: title, Section: "keys", By: by, Body: p})
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

// changeable returns the key of a request, or a fault if it is revoked.
func (c *Console) changeable(r *http.Request) (adminapi.Key, error) {
	k, err := c.service.Key(r.Context(), r.PathValue("id"))
	if err == nil && k.Revoked != nil {
		err = fault.New(fault.Conflict, fault.URL, "key", "The key is revoked. Create another one.")
	}
	return k, err
}

func (c *Console) editKeyPage(w http.ResponseWriter, by admin.Actor, f form, k adminapi.Key) error {
	roles := registryRoles
	if k.Broker == "" {
		roles = consoleRoles
	}
	return c.show(w, statusOf(f), "key-form", view{
		Title: "Edit " + k.Name, Section: "keys", By: by, Body: keyForm{Form: f, Key: k, Roles: roles},
	})
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
	return c.confirm(w, r, by, rotation, url.Values{"grace": {"24h"}})
}

func (c *Console) showRevokeKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	return c.confirm(w, r, by, revocation, nil)
}

// confirmation is a page that asks the user to confirm a change of a key.
type confirmation struct{ template, title string }

var (
	rotation   = confirmation{"rotate", "Rotate "}
	revocation = confirmation{"revoke", "Revoke "}
)

// confirm shows a confirmation with the values of its fields.
func (c *Console) confirm(
	w http.ResponseWriter, r *http.Request, by admin.Actor, page confirmation, values url.Values,
) error {
	k, err := c.changeable(r)
	if err != nil {
		return err
	}
	f, err := c.newForm(r.Context())
	if err != nil {
		return err
	}
	maps.Copy(f.Values, values)
	return c.confirmPage(w, by, page, keyForm{Form: f, Key: k})
}

func (c *Console) confirmPage(w http.ResponseWriter, by admin.Actor, page confirmation, body keyForm) error {
	return c.show(w, statusOf(body.Form), page.template, view{
		Title: page.title + body.Key.Name, Section: "keys", By: by, Body: body,
	})
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
		return c.confirmPage(w, by, rotation, keyForm{Form: f, Key: k})
	}
	if err != nil {
		return err
	}
	return c.showSecret(w, by, "New secret", keyPage{Key: k, Secret: secret})
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
