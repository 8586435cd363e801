package asset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// kind is a type of values. The kinds are plain kinds (kinds.go), objects
// (*model), lists (list) and dropped values (dropped).
type kind interface {
	// convert returns the value to store when a client sends one: sent replaces
	// old or, in objects and lists, merges into it. It returns nil to store
	// nothing. Faults go to w. Old is nil if there is no value yet. Sent is nil
	// only for a null element of a list: members that are null never get here.
	convert(w *walk, path string, old, sent record.Value) record.Value
}

// plain is a kind of values without fields of their own.
type plain struct {
	form Form
	take func(w *walk, path string, old, sent record.Value) record.Value
	most int // characters of a text; 0: take bounds what is stored
}

// convert reports one fault of a value at most. A text that is no code of a list and has U+0000
// breaks two rules; the client mends both at once.
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

// dropped is a kind of values that are checked and never stored.
type dropped struct {
	of  kind
	are record.Value // what every such field has; nil: nothing
}

func (k dropped) convert(w *walk, path string, old, sent record.Value) record.Value {
	w.ignores(path, k.of.convert(w, path, old, sent), k.are)
	return nil
}

// field is one row of a field table.
type field struct {
	name        string
	since       Version // the first version of the API that has the field; "": all have it
	of          kind
	required    bool
	given       bool    // the service gives every asset a value, whoever asks
	ours        bool    // the service sets the field of a part and ignores what clients send
	keeps       bool    // a PUT without the field leaves its value as it is
	sandboxOnly bool    // the field exists only in a sandbox
	unsuggested bool    // clients may send the field, and no error names it as the nearest
	group       Group   // may be hidden with it; fields below are hidden too
	writers     writers // for fields of the asset itself; fields below it have the same

	// absent returns the value of a field without one. Nil: the field gets none.
	absent func(w *walk, old record.Value) record.Value
}

// model is the field table of one type of objects. Its fields are in the order
// in which they are shown.
type model struct {
	name   string // as errors name it
	title  string // as the description of the fields names it; "": name
	fields []field
	check  func(w *walk, path string, o record.Object) // compares fields; runs if every field is valid on its own
}

// modelOf returns the model of the objects that values of a kind are, or hold;
// nil for values without fields.
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

// walk converts one request along the field table and collects all its faults
// (docs/contract.md, "Field rules").
type walk struct {
	rules   Rules
	version Version // of the request
	newID   func() string
	whole   bool          // the request replaces the fields it can write (PUT)
	stored  record.Object // the asset as it is; texts that it has may be of any length
	dated   string        // the asset's dateModified, which stored lacks; "": it has none

	typesOnly bool // the value is going to be ignored: check its type only
	details   []fault.Detail
	names     []string // of the fields that the client sent and whose values are not stored
	compared  int      // searches for a nearest value so far
}

// maxFaults bounds the faults of one answer, and so its size: a body of 1 MiB can
// hold millions of faults.
const maxFaults = 500

func (w *walk) full() bool { return len(w.details) >= maxFaults }

// wrong reports a value that cannot be stored, such as one of the wrong type.
func (w *walk) wrong(path, format string, args ...any) {
	if !w.full() {
		d := fault.Detail{Location: fault.Body, Name: path, Description: fmt.Sprintf(format, args...)}
		w.details = append(w.details, d)
	}
}

// breaks reports a value that has the right type and breaks a rule.
func (w *walk) breaks(path, format string, args ...any) {
	if !w.typesOnly {
		w.wrong(path, format, args...)
	}
}

// bound reports a text of more than so many characters, unless the asset has it in a field of
// the same name already: it may be older than the rule.
func (w *walk) bound(path, text string, most int) {
	if len(text) <= most || w.typesOnly || w.full() || utf8.RuneCountInString(text) <= most || w.has(path, text) {
		return
	}
	w.breaks(path, "String value is too long: at most %d characters are accepted.", most)
}

// refuseNull reports a text with U+0000, unless the asset has it already, as bound. Databases of
// those who copy the registry cannot store it.
func (w *walk) refuseNull(path, text string) {
	if strings.IndexByte(text, 0) >= 0 && !w.has(path, text) {
		w.breaks(path, "String value has the character U+0000; leave it out.")
	}
}

// has tells whether the asset has a text in a field of the same name already.
func (w *walk) has(path, text string) bool {
	return has(w.stored, path[strings.LastIndexByte(path, '.')+1:], text)
}

// has tells whether a field with a name has a text, somewhere in a value.
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
		w.wrong(path, "Please use a mapping for this field or %s instance instead of %s.", m.name, typeOf(sent))
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

// ordered returns the members of o that are fields of the model and have a
// value, in the model's order.
func (m *model) ordered(o record.Object) record.Object {
	out := make(record.Object, 0, len(o))
	for _, f := range m.fields {
		if value := o.Get(f.name); value != nil {
			out = append(out, record.Member{Name: f.name, Value: value})
		}
	}
	return out
}

// member returns the value that a field of the object at parent gets.
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

// missing returns why the client has no such field, "" if it has it.
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

// rogues reports the members of sent that the model does not have.
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

// suggestions returns the names of the fields that an error may suggest.
func (w *walk) suggestions(m *model) []string {
	names := make([]string, 0, len(m.fields))
	for _, f := range m.fields {
		if !f.unsuggested && w.missing(f) == "" {
			names = append(names, f.name)
		}
	}
	return names
}

// list is the kind of lists. Lists merge by index: a shorter list truncates, a
// longer one appends (docs/contract.md, "Merge"). A single value counts as a list
// of one element.
type list struct {
	of     kind
	checks []listCheck
}

// listCheck is a rule over the elements of a list. It runs if every element is
// valid on its own.
type listCheck func(w *walk, path string, l record.List)

func listOf(of kind, checks ...listCheck) list { return list{of, checks} }

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

// asset returns stored, changed by what the client sent in the fields that by may
// write. It checks the types of all other fields and ignores their values
// (docs/contract.md, "Writable fields").
func (w *walk) asset(stored, sent record.Object, by writers) record.Object {
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
	w.rogues(&assetModel, "", sent)
	return out
}

// ignored checks the type of a value that is not going to be stored. It notes the name of the
// field, unless the value is what is stored, or one of the others. A value whose merge into the
// stored one changes nothing counts as the stored one.
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

// maxIgnored is the most names of ignored fields.
const maxIgnored = 20

// ignores notes the name of the field at a path, unless the value that was sent is among others,
// such as the stored one.
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

// found tells whether a fault was reported at a path.
func (w *walk) found(path string) bool {
	return slices.ContainsFunc(w.details, func(d fault.Detail) bool { return d.Name == path })
}

// fault returns the reported faults as one error of kind Invalid, nil if there
// are none.
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

// quote returns a value as an error quotes it: shortened.
func quote(v record.Value) string {
	if text, ok := v.(string); ok {
		return excerpt(text)
	}
	return excerpt(string(record.Append(nil, v)))
}

func (w *walk) time(now time.Time) string { return FormatTime(now, w.rules.Zone) }
