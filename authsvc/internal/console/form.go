package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// form is the content of a form: the values of its fields, and their problems.
type form struct {
	Values url.Values
	Wrong  map[string][]string // the keys are names of fields, the values are problems; "": not about a field
}

// idAlphabet is the alphabet of rand.Text, which makes the ids of forms. The audit log stores these ids, so the
// console accepts only ids with these characters.
const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// newForm returns an empty form with a new id. The form makes only one change, however often it is sent.
func (c *Console) newForm(ctx context.Context) (form, error) {
	head, err := c.Admin.Head(ctx)
	if err != nil {
		return form{}, err
	}
	return form{Values: url.Values{"once": {strconv.FormatInt(head.Seq, 10) + "." + rand.Text()}}}, nil
}

// The function `once` returns the given actor with the id of the form as the id of the request. So a form that is sent
// several times makes its change only once.
func once(by admin.Actor, r *http.Request) (admin.Actor, error) {
	seq, id, _ := strings.Cut(r.PostForm.Get("once"), ".")
	after, err := strconv.ParseInt(seq, 10, 64)
	if err != nil || after < 0 || len(id) != len(rand.Text()) || strings.Trim(id, idAlphabet) != "" {
		return by, fault.New(fault.Invalid, fault.Body, "once", "The form is not complete. Open it again.")
	}
	by.RequestID, by.Once = "form-"+id, &admin.Once{After: after}
	return by, nil
}

// settle ends a form. It calls the function `done` if err is nil. If the user can solve the problems with different
// values in the form, it calls `again` with the form that was sent and the problems. It returns other errors.
func settle(r *http.Request, err error, fields []string, again func(form) error, done func() error) error {
	if err == nil {
		return done()
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid && f.Kind != fault.Conflict {
		return err
	}
	sent := form{Values: r.PostForm, Wrong: map[string][]string{}}
	for _, d := range f.Details {
		name := fieldOf(d.Name)
		if !slices.Contains(fields, name) {
			name = ""
		}
		sent.Wrong[name] = append(sent.Wrong[name], d.Description)
	}
	return again(sent)
}

// limitField is the prefix of names of form fields. A field with this prefix has the limits of a class of requests.
const limitField = "limit-"

// fieldOf returns the field of a form that stands for a field of the admin API: "allow" for "allow.0",
// "limit-write" for "limits.write.1m".
func fieldOf(name string) string {
	name, inside, nested := strings.Cut(name, ".")
	if name == "limits" && nested {
		class, _, _ := strings.Cut(inside, ".")
		return limitField + class
	}
	return name
}

// unknown returns a problem for each value in the request that belongs to no field of the form.
func unknown(r *http.Request, fields []string) (found problems.List) {
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		if name != "once" && name != "was" && !slices.Contains(fields, name) {
			found.Add(name, "The form has no field %.50q.", name)
		}
	}
	return found
}

// statusOf returns the status of the answer with a form: 422 if the form has problems.
func statusOf(f form) int {
	if len(f.Wrong) > 0 {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// Once returns the value of the hidden field that identifies the form.
func (f form) Once() string { return f.Values.Get("once") }

// Field returns an optional field of the form, for its template.
func (f form) Field(name, label, hint string) field {
	return field{form: f, Name: name, Label: label, Hint: hint}
}

// Needed returns a required field of the form, for its template.
func (f form) Needed(name, label, hint string) field {
	return field{form: f, Name: name, Label: label, Hint: hint, Needed: true}
}

type field struct {
	form              form
	Name, Label, Hint string
	Needed            bool
}

func (f field) Value() string         { return f.form.Values.Get(f.Name) }
func (f field) Has(value string) bool { return slices.Contains(f.form.Values[f.Name], value) }
func (f field) Wrong() []string       { return f.form.Wrong[f.Name] }

// Described returns the ids of the texts that describe the field, for screen readers.
func (f field) Described() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.Name+"-hint")
	}
	if len(f.Wrong()) > 0 {
		ids = append(ids, f.Name+"-wrong")
	}
	return strings.Join(ids, " ")
}

// unchanged returns a digest of the settings that a form shows. The form sends the digest back. Then mustBe
// compares it with the current settings, to see whether they are unchanged.
func unchanged(settings any) (string, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("encode settings: %w", err)
	}
	return digest(text), nil
}

// mustBe returns a fault of kind Conflict if the settings have changed since the form showed them. The argument
// `shown` is a digest of the settings that the form showed. The function `unchanged` made it, and the form sent it
// back.
func mustBe(settings any, shown string) error {
	now, err := unchanged(settings)
	if err != nil {
		return err
	}
	if now != shown {
		return fault.New(fault.Conflict, fault.Body, "",
			"Somebody else has changed this since you opened the form. Open it again to see the current values.")
	}
	return nil
}

// keySettings returns the settings that a form has sent for a key. The argument `was` has the settings before the
// change. For each field that it cannot read, keySettings adds a problem to the argument `found`.
func keySettings(sent url.Values, was adminapi.KeySettings, found *problems.List) adminapi.KeySettings {
	s := adminapi.KeySettings{
		Name: strings.TrimSpace(sent.Get("name")), Role: sent.Get("role"),
		Levels: strings.Join(sent["levels"], ""), Test: sent.Get("test") != "",
		Allow: strings.FieldsFunc(sent.Get("allow"), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }),
	}
	switch {
	case apikey.Administers(identity.Role(s.Role)): // a key that administers has no levels, but the form offers them
		s.Levels = ""
	case strings.Contains(s.Levels, allLevels) && strings.Trim(s.Levels, "01234") == "":
		s.Levels = allLevels
	}
	switch text := sent.Get("expires"); {
	case text == "":
	// The form shows the time without fractions of a second. If its text is unchanged, the key keeps its exact
	// time.
	case was.Expires != nil && stamp(*was.Expires) == text:
		s.Expires = was.Expires
	default:
		at, err := time.Parse(stampLayout, text)
		if err != nil {
			at, err = time.Parse(strings.TrimSuffix(stampLayout, ":05"), text)
		}
		if err != nil {
			found.Add("expires", "A time is needed, such as 2027-01-31T12:00, in UTC.")
		}
		s.Expires = &at
	}
	for _, class := range authapi.Classes() {
		windows, wrong := parseRates(sent.Get(limitField + class))
		if wrong != nil {
			found.Add("limits."+class, "Write limits such as 5/1s, 100/1m, each window once. Not so: %s.",
				strings.Join(wrong, ", "))
		}
		if len(windows) > 0 {
			if s.Limits == nil {
				s.Limits = map[string]map[string]int64{}
			}
			s.Limits[class] = windows
		}
	}
	return s
}

// stampLayout is the layout of a time in a form.
const stampLayout = "2006-01-02T15:04:05"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// rate has the limits of a class of requests as text: "5/1s, 100/1m".
type rate struct{ Class, Told string }

func rates(limits map[string]map[string]int64) []rate {
	var told []rate
	for _, class := range authapi.Classes() {
		var parts []string
		windows := limits[class]
		for _, window := range slices.SortedFunc(maps.Keys(windows), byLength) {
			parts = append(parts, fmt.Sprintf("%d/%s", windows[window], window))
		}
		if len(parts) > 0 {
			told = append(told, rate{class, strings.Join(parts, ", ")})
		}
	}
	return told
}

func byLength(a, b string) int {
	length := func(window string) time.Duration {
		d, err := time.ParseDuration(window)
		if err != nil { // the store has only windows that can be parsed
			return 0
		}
		return d
	}
	return cmp.Or(cmp.Compare(length(a), length(b)), cmp.Compare(a, b))
}

// parseRates reads limits such as "5/1s, 100/1m". It returns the limits that it can read, and the first texts that it
// cannot read, in quotes.
func parseRates(text string) (windows map[string]int64, wrong []string) {
	windows = map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		number, window, _ := strings.Cut(part, "/")
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		window = strings.TrimSpace(window)
		_, twice := windows[window]
		if _, bad := time.ParseDuration(window); err == nil && bad == nil && !twice {
			windows[window] = n
		} else if len(wrong) < maxWrong {
			wrong = append(wrong, fmt.Sprintf("%.40q", part))
		}
	}
	return windows, wrong
}

// maxWrong is the maximum number of faulty limits that parseRates returns.
const maxWrong = 10
