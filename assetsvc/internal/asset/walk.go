package asset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/assetfields"
	"asset-registry/shared/fault"
)

// kind is a type of values: a plain kind (kinds.go), an object (*model), a list (list) or a dropped value
// (dropped).
type kind interface {
	// convert returns the value to store for a value that a client sends. The parameter `sent` is this value, and
	// `old` is the stored value, or nil. If both are objects or lists, convert merges `sent` into `old`. Otherwise
	// `sent` replaces `old`. If the result is nil, nothing is stored. convert adds faults to w. For an element of a
	// list that is null, `sent` is nil. For a member of an object that is null, convert is not called.
	convert(w *walk, path string, old, sent record.Value) record.Value
}

// plain is a kind of values that have no fields.
type plain struct {
	form Form
	take func(w *walk, path string, old, sent record.Value) record.Value
	most int // maximum number of characters of a text; 0: the function `take` checks the length
}

func of(kind string, take func(w *walk, path string, old, sent record.Value) record.Value) plain {
	return plain{form: Form{Kind: kind}, take: take}
}

// convert adds at most one fault for a value, even if the value breaks two rules. For example, a text with U+0000 may
// also not be a code of a list. When the client corrects the text, both faults are gone.
func (k plain) convert(w *walk, path string, old, sent record.Value) record.Value {
	faults := len(w.details)
	value := k.take(w, path, old, sent)
	if text, ok := value.(string); ok {
		w.refuseNull(path, text)
		if k.most > 0 {
			w.bound(path, text, k.most)
		}
	}
	w.details = w.details[:min(len(w.details), faults+1)]
	return value
}

// dropped is a kind of values that are checked, but never stored.
type dropped struct {
	of  kind
	are record.Value // the value that answers always show for the field; nil: none
}

func (k dropped) convert(w *walk, path string, old, sent record.Value) record.Value {
	w.ignores(path, k.of.convert(w, path, old, sent), k.are)
	return nil
}

// field is a row of a field table.
type field struct {
	name        string
	since       Version // the first version of the API that has the field; "": all have it
	of          kind
	required    bool
	given       bool                // all assets have a value, which the service sets
	ours        bool                // a field of a part, set by the service; values that clients send are ignored
	keeps       bool                // a PUT without the field does not change it
	sandboxOnly bool                // only a sandbox has the field
	unsuggested bool                // clients may send the field, but errors do not suggest it as the nearest name
	group       Group               // an operator may hide the field, and all fields below it, with this group
	writers     assetfields.Writers // set only for fields of the asset itself; the fields inside have the same writers
	about       string              // a sentence and an example for the description of the fields
	example     any

	// absent returns a value for a field that has no value. If absent is nil, the field stays without a value.
	absent func(w *walk, old record.Value) record.Value
}

// model is the field table of one type of objects. The order of its fields is the order in answers.
type model struct {
	name   string // the name in errors
	title  string // the name in the description of the fields; "": the name in errors
	about  string // a sentence for the description of the fields
	fields []field
	check  objectCheck
}

// objectCheck is a rule over several fields of an object. It runs only if each field is valid.
type objectCheck func(w *walk, path string, o record.Object)

// modelOf returns the model of the objects of a kind. For a list, it returns the model of the elements. It returns nil
// for values without fields.
func modelOf(k kind) *model {
	switch k := k.(type) {
	case *model:
		return k
	case list:
		return modelOf(k.of)
	default:
		return nil
	}
}

// walk converts one request, along the field table, and collects all its faults (docs/contract.md, "Field
// rules").
type walk struct {
	rules   Rules
	version Version // version of the API that the request uses
	newID   func() string
	whole   bool          // the request replaces all fields that it may write (PUT)
	stored  record.Object // the asset before the request; texts that it already has may be of any length
	dated   string        // the asset's dateModified, which the field `stored` does not have; "": it has none

	typesOnly bool // check only the type of the value, because the value will be ignored
	details   []fault.Detail
	names     []string // names of the fields whose sent values are not stored
	compared  int      // number of searches for a nearest value that were made so far
}

// maxFaults is the maximum number of faults in one answer. It limits the size of the answer: a body of 1 MiB can have
// millions of faults.
const maxFaults = 500

func (w *walk) full() bool { return len(w.details) >= maxFaults }

// wrong adds a fault for a value that cannot be stored, such as one of the wrong type.
func (w *walk) wrong(path, format string, args ...any) {
	if !w.full() {
		d := fault.Detail{Location: fault.Body, Name: path, Description: fmt.Sprintf(format, args...)}
		w.details = append(w.details, d)
	}
}

// breaks adds a fault for a value that has the right type, but breaks a rule.
func (w *walk) breaks(path, format string, args ...any) {
	if !w.typesOnly {
		w.wrong(path, format, args...)
	}
}

// bound adds a fault for a text that is longer than the given number of characters. It accepts the text if the
// asset already has it in a field of the same name, because the stored text may be older than the rule.
func (w *walk) bound(path, text string, most int) {
	if len(text) <= most || w.typesOnly || w.full() || utf8.RuneCountInString(text) <= most || w.has(path, text) {
		return
	}
	w.breaks(path, "String value is too long: at most %d characters are accepted.", most)
}

// refuseNull adds a fault for a text with the character U+0000, unless the asset already has this text in a field
// of the same name. Some databases cannot store this character, so programs that copy the registry would fail.
func (w *walk) refuseNull(path, text string) {
	if strings.IndexByte(text, 0) >= 0 && !w.has(path, text) {
		w.breaks(path, "String value has the character U+0000; leave it out.")
	}
}

// The method `has` reports whether the stored asset has this text, at any depth, in a field with the last name of the
// path.
func (w *walk) has(path, text string) bool {
	return has(w.stored, path[strings.LastIndexByte(path, '.')+1:], text)
}

// The function `has` reports whether a value has, at any depth, a field with this name and this text.
func has(v record.Value, name, text string) bool {
	switch v := v.(type) {
	case record.Object:
		return slices.ContainsFunc(v, func(m record.Member) bool {
			return m.Name == name && m.Value == record.Value(text) || has(m.Value, name, text)
		})
	case record.List:
		return slices.ContainsFunc(v, func(element record.Value) bool { return has(element, name, text) })
	}
	return false
}

const (
	rogue    = "Rogue field"
	required = "This field is required."
)

func (m *model) convert(w *walk, path string, old, sent record.Value) record.Value {
	in, ok := sent.(record.Object)
	if !ok {
		const says = "Please use a mapping for this field or %s instance instead of %s. Send one object, {\"name\": value}."
		w.wrong(path, says, m.name, typeOf(sent))
		return nil
	}
	stored, _ := old.(record.Object)
	faults := len(w.details)
	out := make(record.Object, 0, len(m.fields))
	for _, f := range m.fields {
		if value := w.member(f, path, stored, in); value != nil {
			out = append(out, record.Member{Name: f.name, Value: value})
		}
	}
	w.rogues(m, path, in)
	if m.check != nil && !w.typesOnly && len(w.details) == faults {
		m.check(w, path, out)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// ordered returns the members of o that are fields of the model and have a value, in the order of the model.
func (m *model) ordered(o record.Object) record.Object {
	out := make(record.Object, 0, len(o))
	for _, f := range m.fields {
		if value := o.Get(f.name); value != nil {
			out = append(out, record.Member{Name: f.name, Value: value})
		}
	}
	return out
}

// member returns the new value of a field. The argument `parent` is the path of the object with this field.
func (w *walk) member(f field, parent string, old, sent record.Object) record.Value {
	stored := old.Get(f.name)
	in, isSent := sent.Lookup(f.name)
	reason := w.missing(f)
	switch {
	case isSent && reason != "":
		w.wrong(record.Join(parent, f.name), "%s: %s", rogue, reason)
		return nil
	case !isSent && stored != nil && (reason != "" || f.keeps || !w.whole):
		return stored
	}
	var value record.Value
	faults := len(w.details)
	if in != nil {
		value = f.of.convert(w, record.Join(parent, f.name), stored, in)
	}
	if value == nil && f.absent != nil {
		value = f.absent(w, stored)
	}
	if f.required && reason == "" && len(w.details) == faults && !isFilled(value) {
		w.breaks(record.Join(parent, f.name), required)
	}
	return value
}

// missing returns a reason why the field does not exist for this client, or "" if it exists.
func (w *walk) missing(f field) string {
	switch {
	case f.sandboxOnly && !w.rules.Sandbox:
		return "only a sandbox has it"
	case w.version.before(f.since):
		return "this version of the API does not have it"
	default:
		return ""
	}
}

// rogues adds a fault for each sent member that the model does not have.
func (w *walk) rogues(m *model, path string, sent record.Object) {
	for _, member := range sent {
		if w.full() {
			return
		}
		if !slices.ContainsFunc(m.fields, func(f field) bool { return f.name == member.Name }) {
			w.wrong(record.Join(path, excerpt(member.Name)), "%s%s", rogue, w.near(member.Name, w.suggestions(m)))
		}
	}
}

// suggestions returns the names of the fields that an error may suggest instead of an unknown one.
func (w *walk) suggestions(m *model) []string {
	names := make([]string, 0, len(m.fields))
	for _, f := range m.fields {
		if !f.unsuggested && w.missing(f) == "" {
			names = append(names, f.name)
		}
	}
	return names
}

// list is the kind of lists. Lists are merged by index: a shorter sent list truncates the stored list, and a longer
// one extends it (docs/contract.md, "Merge"). A single value counts as a list with one element.
type list struct {
	of     kind
	checks []listCheck
}

// listCheck is a rule over the elements of a list. It runs only if each element is valid.
type listCheck func(w *walk, path string, l record.List)

func (k list) convert(w *walk, path string, old, sent record.Value) record.Value {
	in, isList := sent.(record.List)
	if _, isObject := sent.(record.Object); isObject {
		w.wrong(path, "Please use a list for this field.")
		return nil
	}
	if !isList {
		in = record.List{sent}
	}
	stored, _ := old.(record.List)
	faults := len(w.details)
	out := make(record.List, 0, len(in))
	for i, element := range in {
		if w.full() {
			break
		}
		var before record.Value
		if i < len(stored) {
			before = stored[i]
		}
		out = append(out, k.of.convert(w, record.Join(path, strconv.Itoa(i)), before, element))
	}
	for _, check := range k.checks {
		if len(w.details) == faults {
			check(w, path, out)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// The method `asset` returns the fields of an asset after a request. The parameter `by` says on which occasion the
// client sends the request. The client may write a field only if `by` is one of the field's writers. For all other
// sent fields, the method checks only the types, and ignores the values (docs/contract.md, "Writable fields").
func (w *walk) asset(stored, sent record.Object, by assetfields.Writers) record.Object {
	out := make(record.Object, 0, len(assetModel.fields))
	for _, f := range assetModel.fields {
		value := stored.Get(f.name)
		if f.writers&by != 0 {
			value = w.member(f, "", stored, sent)
		} else if in, isSent := sent.Lookup(f.name); isSent {
			now := value
			if f.name == modifiedField && w.dated != "" {
				now = w.dated
			}
			w.ignored(f, in, now)
		}
		if value != nil {
			out = append(out, record.Member{Name: f.name, Value: value})
		}
	}
	w.rogues(assetModel, "", sent)
	return out
}

// ignored checks the type of a value that will not be stored, and notes the name of its field as ignored. It does not
// note the field if the sent value would change nothing, or if the sent value equals one of the values in the argument
// `others`.
func (w *walk) ignored(f field, sent, stored record.Value, others ...record.Value) {
	if d, ok := f.of.(dropped); ok {
		f.of = d.of
	}
	whole := w.whole
	w.typesOnly, w.whole = true, false
	value := w.member(f, "", record.Object{{Name: f.name, Value: stored}}, record.Object{{Name: f.name, Value: sent}})
	w.typesOnly, w.whole = false, whole
	w.ignores(f.name, value, append(others, stored)...)
}

// maxIgnored is the maximum number of names of ignored fields that are noted.
const maxIgnored = 20

// ignores notes the name of the field at a path as ignored, unless the sent value equals one of the values in the
// argument `others`, such as the stored value.
func (w *walk) ignores(path string, sent record.Value, others ...record.Value) {
	isSame := func(other record.Value) bool { return record.Equal(sent, other) }
	if w.typesOnly || len(w.names) == maxIgnored || slices.ContainsFunc(others, isSame) {
		return
	}
	steps := slices.DeleteFunc(strings.Split(path, "."), func(step string) bool {
		_, err := strconv.Atoi(step) // an index of a list
		return err == nil
	})
	if name := strings.Join(steps, "."); !slices.Contains(w.names, name) {
		w.names = append(w.names, name)
	}
}

// found reports whether there is a fault at a path.
func (w *walk) found(path string) bool {
	return slices.ContainsFunc(w.details, func(d fault.Detail) bool { return d.Name == path })
}

// fault returns all faults in one error of kind Invalid, or nil if there are none.
func (w *walk) fault() error {
	if len(w.details) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Details: w.details}
}

// typeOf returns the name of the type of a JSON value.
func typeOf(v record.Value) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case record.Number:
		return "number"
	case string:
		return "string"
	case record.List:
		return "list"
	default:
		return "object"
	}
}

// quote returns a value in the shortened form in which errors quote it.
func quote(v record.Value) string {
	if text, ok := v.(string); ok {
		return excerpt(text)
	}
	return excerpt(string(record.Append(nil, v)))
}

func (w *walk) time(now time.Time) string { return FormatTime(now, w.rules.Zone) }
