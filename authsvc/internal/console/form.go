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

// form is a form as it is shown: what stands in its fields, and what is wrong
// with them.
type form struct {
	Values url.Values
	Wrong  map[string][]string // by field; that of none under ""
}

// idAlphabet is what the id of a form is of (rand.Text): it stands in the audit log.
const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// newForm returns a form that makes one change, however often it is sent.
func (c *Console) newForm(ctx context.Context) (form, error) {
	head, err := c.service.Head(ctx)
	if err != nil {
		return form{}, err
	}
	return form{Values: url.Values{"once": {strconv.FormatInt(head.Seq, 10) + "." + rand.Text()}}}, nil
}

// once has whom a form comes from act under the form's own id.
func once(by admin.Actor, r *http.Request) (admin.Actor, error) {
	seq, id, _ := strings.Cut(r.PostForm.Get("once"), ".")
	after, err := strconv.ParseInt(seq, 10, 64)
	if err != nil || after < 0 || len(id) != len(rand.Text()) || strings.Trim(id, idAlphabet) != "" {
		return by, fault.New(fault.Invalid, fault.Body, "once", "The form is not complete. Open it anew.")
	}
	by.RequestID, by.Once = "form-"+id, &admin.Once{After: after}
	return by, nil
}

// refused returns the form that was sent, with what a fault says of its fields;
// false if the error is nothing that another input could mend.
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

// limitField starts the names of the fields with the limits of a class.
const limitField = "limit-"

// fieldOf returns the field of a form that holds a value of the API: "allow" for
// "allow.0", "limit-write" for "limits.write.1m".
func fieldOf(name string) string {
	name, inside, nested := strings.Cut(name, ".")
	if name == "limits" && nested {
		class, _, _ := strings.Cut(inside, ".")
		return limitField + class
	}
	return name
}

// unknown notes what a form was sent with beside its fields.
func unknown(r *http.Request, fields []string, found *problems.List) {
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		if name != "once" && name != "was" && !slices.Contains(fields, name) {
			found.Add(name, "The form has no field %.50q.", name)
		}
	}
}

// statusOf is that of a form which is shown again.
func statusOf(f form) int {
	if len(f.Wrong) > 0 {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// Once is the form's hidden field.
func (f form) Once() string { return f.Values.Get("once") }

// Field is one of the form's fields, for its template.
func (f form) Field(name, label, hint string) field { return field{f, name, label, hint, false} }

// Needed is Field of one that must be filled in.
func (f form) Needed(name, label, hint string) field { return field{f, name, label, hint, true} }

type field struct {
	form              form
	Name, Label, Hint string
	Needed            bool
}

func (f field) Value() string         { return f.form.Values.Get(f.Name) }
func (f field) Has(value string) bool { return slices.Contains(f.form.Values[f.Name], value) }
func (f field) Wrong() []string       { return f.form.Wrong[f.Name] }

// Described names the texts that a reader is told with the field.
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

// unchanged is what a form carries of settings that were shown, to tell whether
// they are still those when it is sent.
func unchanged(settings any) (string, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("encode settings: %w", err)
	}
	return digest(text), nil
}

// mustBe refuses a form that was made of other settings than there are now.
func mustBe(settings any, shown string) error {
	now, err := unchanged(settings)
	if err != nil {
		return err
	}
	if now != shown {
		return fault.New(fault.Conflict, fault.Body, "", "Somebody else has changed this since you opened the form. Open it anew to see how it is now.")
	}
	return nil
}
