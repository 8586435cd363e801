package console

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/routes"
)

type keyPage struct {
	Key    adminapi.Key
	Secret string // set only in the response to the form that made the secret
	Try    string // a command with which an operator can try the secret
	Usage  usage
}

// Rates returns the limits of the key as text.
func (p keyPage) Rates() []rate { return rates(p.Key.Limits) }

// Live reports whether the key can still change.
func (p keyPage) Live() bool { return p.Key.Revoked == nil }

func (c *Console) showKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	k, err := c.Admin.Key(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	days, err := daysOf(r)
	if err != nil {
		return err
	}
	counts, err := c.Admin.Usage(r.Context(), k.ID, days)
	if err != nil {
		return err
	}
	used := newUsage(counts, days, c.Now(), keyPath(k.ID), url.Values{}, 7, usualSpan, 90, 365)
	return c.show(w, http.StatusOK, "key", view{
		Title: "{}", Of: k.Name, Section: "keys", By: by, Notice: notices[r.URL.Query().Get("notice")],
		Body: keyPage{Key: k, Usage: used},
	})
}

// keyForm is the body of a page with a form that creates or changes a key.
type keyForm struct {
	Form    form
	Key     adminapi.Key // zero for a new key
	Roles   []role
	Brokers []adminapi.Broker // to choose from
	More    bool              // there are more brokers: the user types the name
	Used    *time.Time        // when the key was last used; nil: never
	Confirm bool              // the user must type the name of the key to confirm
}

type role struct{ Name, Told string }

// Levels returns the accreditation levels to choose from.
func (keyForm) Levels() []level {
	return []level{
		{"1", "1", "no request asks for it yet"},
		{"2", "2", "no request asks for it yet"},
		{"3", "3", "create assets, and take over assets of other brokers"},
		{"4", "4", "no request asks for it yet: the owner token is enough to change an asset"},
		{allLevels, "All", "every level, also those that come later"},
	}
}

// level is an accreditation level. Contract 35 defines what each level allows.
type level struct{ Value, Name, Allows string }

// allLevels is the level that stands for all levels.
const allLevels = "0"

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
		limitField + "list", limitField + "own", limitField + "read", limitField + "write", "allow",
	}
	rotateFields = []string{"grace"}
	revokeFields = []string{"confirm"}
)

func (c *Console) showNewKey(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	f.Values.Set("role", "broker")
	f.Values["levels"] = []string{"1", "2", "3", "4"}
	f.Values.Set("broker", r.URL.Query().Get("broker"))
	return c.newKeyPage(w, r, by, f)
}

const offered = 500 // how many brokers the form offers; if there are more, users type the name

func (c *Console) newKeyPage(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	brokers, next, err := c.Admin.Brokers(r.Context(), admin.Filter{Limit: offered})
	if err != nil {
		return err
	}
	body := keyForm{Form: f, Roles: slices.Concat(registryRoles, consoleRoles), Brokers: brokers, More: next != ""}
	return c.show(w, statusOf(f), "key-form", view{Title: "New key", Section: "keys", By: by, Body: body})
}

func (c *Console) createKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	unread := unknown(r, newKeyFields)
	settings := keySettings(r.PostForm, adminapi.KeySettings{}, &unread)
	n := adminapi.NewKey{Broker: r.PostForm.Get("broker"), KeySettings: settings}
	k, secret, err := c.Admin.CreateKey(r.Context(), by, n, unread.Details()...)
	return settle(r, err, newKeyFields,
		func(f form) error { return c.newKeyPage(w, r, by, f) },
		func() error { return c.showSecret(w, r, by, "Key created", keyPage{Key: k, Secret: secret}) })
}

// showSecret shows a new secret. No cache keeps this response. A form that is sent again does not get the secret
// again.
func (c *Console) showSecret(
	w http.ResponseWriter, r *http.Request, by admin.Actor, title string, p keyPage,
) error {
	p.Try = c.tryLine(r, p)
	return c.show(w, http.StatusOK, "secret", view{
		Title: title, Section: "keys", By: by, Notice: notices[noticeOf(by, "")], Body: p,
	})
}

// plainHost matches a host with a port and without characters that a shell would interpret.
var plainHost = regexp.MustCompile(`^[0-9A-Za-z.:\[\]-]+$`)

// tryLine returns a command that shows whether a secret works; "" if the console does not know the address.
func (c *Console) tryLine(r *http.Request, p keyPage) string {
	if p.Key.Broker != "" {
		if c.BaseURL == "" {
			return ""
		}
		return "curl -u '" + p.Secret + ":' " + c.BaseURL + routes.Prefix(routes.Current) + "/me"
	}
	if !plainHost.MatchString(r.Host) {
		return ""
	}
	scheme := "http"
	if secure(r) {
		scheme = "https"
	}
	return "curl -u '" + p.Secret + ":' " + scheme + "://" + r.Host + adminapi.Prefix + "/keys"
}

func (c *Console) showEditKey(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	k, err := c.changeable(r)
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
	if strings.Contains(k.Levels, allLevels) {
		v["levels"] = []string{allLevels}
	}
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

// changeable returns the key of a request, or a fault if the key is revoked.
func (c *Console) changeable(r *http.Request) (adminapi.Key, error) {
	k, err := c.Admin.Key(r.Context(), r.PathValue("id"))
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
		Title: "Edit {}", Of: k.Name, Section: "keys", By: by, Body: keyForm{Form: f, Key: k, Roles: roles},
	})
}

func (c *Console) editKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	k, err := c.changeable(r)
	if err != nil {
		return err
	}
	_, err = c.Admin.ChangeKey(r.Context(), by, k.ID, func(s *adminapi.KeySettings) error {
		if err := mustBe(*s, r.PostForm.Get("was")); err != nil {
			return err
		}
		unread := unknown(r, editKeyFields)
		*s = keySettings(r.PostForm, *s, &unread)
		return unread.Err()
	})
	return settle(r, err, editKeyFields,
		func(f form) error { return c.editKeyPage(w, by, f, k) },
		func() error { return redirect(w, r, keyPath(k.ID), noticeOf(by, changed)) })
}

func (c *Console) showRotateKey(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	f.Values.Set("grace", "24h")
	return c.confirm(w, r, by, rotation, f)
}

func (c *Console) showRevokeKey(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	return c.confirm(w, r, by, revocation, f)
}

// recently is a time after the last use of a key. During this time, a user who revokes the key must type its name.
const recently = 24 * time.Hour

// lastUse returns when a key was last used; nil if it was never used.
func lastUse(k adminapi.Key) (last *time.Time) {
	for _, s := range k.Secrets {
		for _, use := range s.Uses {
			if last == nil || use.Time.After(*last) {
				last = &use.Time
			}
		}
	}
	return last
}

// confirmation is a page on which the user confirms a change of a key.
type confirmation struct{ template, title string }

var (
	rotation   = confirmation{"rotate", "Rotate {}"}
	revocation = confirmation{"revoke", "Revoke {}"}
)

// confirm shows a confirmation with a new form.
func (c *Console) confirm(w http.ResponseWriter, r *http.Request, by admin.Actor, page confirmation, f form) error {
	k, err := c.changeable(r)
	if err != nil {
		return err
	}
	return c.confirmPage(w, by, page, keyForm{Form: f, Key: k})
}

func (c *Console) confirmPage(w http.ResponseWriter, by admin.Actor, page confirmation, body keyForm) error {
	body.Used = lastUse(body.Key)
	body.Confirm = c.usedRecently(body.Key)
	return c.show(w, statusOf(body.Form), page.template, view{
		Title: page.title, Of: body.Key.Name, Section: "keys", By: by, Body: body,
	})
}

func (c *Console) rotateKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	unread := unknown(r, rotateFields)
	grace, err := time.ParseDuration(r.PostForm.Get("grace"))
	if err != nil {
		unread.Add("grace", "Send a length of time such as 24h or 30m.")
	}
	k, secret, err := c.Admin.RotateKey(r.Context(), by, r.PathValue("id"), grace, unread.Details()...)
	return settle(r, err, rotateFields,
		func(f form) error { return c.confirm(w, r, by, rotation, f) },
		func() error { return c.showSecret(w, r, by, "New secret", keyPage{Key: k, Secret: secret}) })
}

func (c *Console) revokeKey(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	k, err := c.Admin.Key(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	wrong := unknown(r, revokeFields)
	if k.Revoked == nil && c.usedRecently(k) && strings.TrimSpace(r.PostForm.Get("confirm")) != k.Name {
		wrong.Add("confirm", "Type the name of the key: it was used within a day.")
	}
	return settle(r, wrong.Err(), revokeFields,
		func(f form) error { return c.confirmPage(w, by, revocation, keyForm{Form: f, Key: k}) },
		func() error {
			if _, err := c.Admin.RevokeKey(r.Context(), by, k.ID); err != nil {
				return err
			}
			return redirect(w, r, keyPath(k.ID), noticeOf(by, revoked))
		})
}

func (c *Console) usedRecently(k adminapi.Key) bool {
	last := lastUse(k)
	return last != nil && c.Now().Sub(*last) < recently
}
