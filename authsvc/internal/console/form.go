package console

import (
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

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/fault"
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
	head, err := c.audit.Head(ctx)
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

// refused returns the form that was sent, with the problems of a fault. It returns false if the user cannot solve the
// problems with different values in the form.
func refused(r *http.Request, err error, fields []string) (form, bool) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid && f.Kind != fault.Conflict {
		return form{}, false
	}
	sent := form{Values: r.PostForm, Wrong: map[string][]string{}}
	for _, d := range f.Details {
		name := fieldOf(d.Name)
		if !slices.Contains(fields, name) {
			name = ""
		}
		sent.Wrong[name] = append(sent.Wrong[name], d.Description)
	}
	return sent, true
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

// unknown adds a problem for each value in the request that belongs to no field of the form.
func unknown(r *http.Request, fields []string, found *problems.List) {
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		if name != "once" && name != "was" && !slices.Contains(fields, name) {
			found.Add(name, "The form has no field %.50q.", name)
		}
	}
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
