package asset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// A kind is a type of values. It returns what is kept when sent takes the
// place of old or, for objects and lists, is merged into it; nil when nothing
// is kept. Neither value is nil for "null": members that are null never get
// here, elements of lists do. Faults go to w.
type kind func(w *walk, path string, old, sent record.Value) record.Value

// field is one row of a field model.
type field struct {
	name     string
	of       kind
	required bool
	absent   func(w *walk, old record.Value) record.Value // what it is when nobody gave it a value; nil: nothing
	writers  writers                                      // of fields of the asset itself; within it they are those of what they lie in
	unasked  bool                                         // taken, but suggested to nobody
}

// model is an object with its fields, in the order they are shown in.
type model struct {
	name   string
	fields []field
	check  func(w *walk, path string, o record.Object) // rules over several fields; runs when each has passed on its own
}

// walk goes through what a client sent, along the field model, and collects
// every fault (contract, decision 20).
type walk struct {
	rules  Rules
	hidden []string // dotted paths of fields that are rogue in what was sent
	newID  func() string
	whole  bool // what is sent replaces what is there; hidden fields stay

	typesOnly bool // of values that will be ignored only the types are judged
	details   []fault.Detail
	compared  int // values that the nearest was looked for
}

// maxFaults bounds how many faults are told, and so the size of the answer: a
// body of 1 MiB can hold millions.
const maxFaults = 500

func (w *walk) full() bool { return len(w.details) >= maxFaults }

// wrong notes a value of the wrong type.
func (w *walk) wrong(path, format string, args ...any) {
	if !w.full() {
		w.details = append(w.details, fault.Detail{Location: fault.Body, Name: path, Description: fmt.Sprintf(format, args...)})
	}
}

// breaks notes a value that has its type but breaks a rule.
func (w *walk) breaks(path, format string, args ...any) {
	if !w.typesOnly {
		w.wrong(path, format, args...)
	}
}

const (
	rogue    = "Rogue field"
	required = "This field is required."
)

// sandboxField exists only in a sandbox.
const sandboxField = "sandboxParameters"

// convert is the kind of objects of the model.
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
		if value := w.member(f, record.Join(path, f.name), stored, in); value != nil {
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

// ordered returns the members of an object that are fields of the model and
// have a value, in the model's order.
func (m *model) ordered(o record.Object) record.Object {
	out := make(record.Object, 0, len(o))
	for _, f := range m.fields {
		if value := o.Get(f.name); value != nil {
			out = append(out, record.Member{Name: f.name, Value: value})
		}
	}
	return out
}

// member returns the value that a field of an object gets.
func (w *walk) member(f field, path string, old, sent record.Object) record.Value {
	stored := old.Get(f.name)
	in, there := sent.Lookup(f.name)
	hidden := slices.Contains(w.hidden, path)
	if there && hidden {
		w.unavailable(path)
		return nil
	}
	if !there && stored != nil && (hidden || !w.whole) {
		return stored
	}
	var value record.Value
	faults := len(w.details)
	if in != nil {
		value = f.of(w, path, stored, in)
	}
	if value == nil && f.absent != nil {
		value = f.absent(w, stored)
	}
	if f.required && len(w.details) == faults && (value == nil || value == "") {
		w.breaks(path, required)
	}
	return value
}

// unavailable notes a hidden field, and why it is hidden.
func (w *walk) unavailable(path string) {
	reason := "this version of the API does not have it"
	if path == sandboxField {
		reason = "only a sandbox has it"
	}
	w.wrong(path, "%s: %s", rogue, reason)
}

// rogues notes the members of sent that the model does not have.
func (w *walk) rogues(m *model, path string, sent record.Object) {
	for _, member := range sent {
		if w.full() {
			return
		}
		if !slices.ContainsFunc(m.fields, func(f field) bool { return f.name == member.Name }) {
			w.wrong(record.Join(path, excerpt(member.Name)), "%s%s", rogue, w.nearest(member.Name, w.offered(m, path)))
		}
	}
}

// offered returns the names of the fields that a client may be told to send.
func (w *walk) offered(m *model, path string) []string {
	names := make([]string, 0, len(m.fields))
	for _, f := range m.fields {
		if !f.unasked && !slices.Contains(w.hidden, record.Join(path, f.name)) {
			names = append(names, f.name)
		}
	}
	return names
}

// listOf is the kind of lists. They merge by index: a shorter one truncates,
// a longer one appends (contract, section 4). A value that is no list counts
// as a list of one.
func listOf(of kind, checks ...func(w *walk, path string, l record.List)) kind {
	return func(w *walk, path string, old, sent record.Value) record.Value {
		in, ok := sent.(record.List)
		if _, object := sent.(record.Object); object {
			w.wrong(path, "Please use a list for this field.")
			return nil
		}
		if !ok {
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
			out = append(out, of(w, record.Join(path, strconv.Itoa(i)), before, element))
		}
		for _, check := range checks {
			if len(w.details) == faults {
				check(w, path, out)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
}

// asset returns stored with what was sent in it, as far as the writer may
// write it; of the rest only the types are judged (contract, section 2.4).
func (w *walk) asset(stored, sent record.Object, mayWrite func(f field, sent bool) bool) record.Object {
	out := make(record.Object, 0, len(assetModel.fields))
	for _, f := range assetModel.fields {
		value := stored.Get(f.name)
		in, there := sent.Lookup(f.name)
		switch {
		case mayWrite(f, there):
			value = w.member(f, f.name, stored, sent)
		case there:
			w.ignored(f, in)
		}
		if value != nil {
			out = append(out, record.Member{Name: f.name, Value: value})
		}
	}
	w.rogues(&assetModel, "", sent)
	return out
}

// ignored judges a value that will be ignored.
func (w *walk) ignored(f field, sent record.Value) {
	w.typesOnly = true
	w.member(f, f.name, nil, record.Object{{Name: f.name, Value: sent}})
	w.typesOnly = false
}

// found tells whether there is a fault at a path or below it.
func (w *walk) found(path string) bool {
	return slices.ContainsFunc(w.details, func(d fault.Detail) bool {
		return d.Name == path || strings.HasPrefix(d.Name, path+".")
	})
}

// fault returns what was found, nil when nothing is wrong.
func (w *walk) fault() error {
	if len(w.details) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Details: w.details}
}

// typeOf names the type of a JSON value.
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

// quote shows a value in an error, shortened.
func quote(v record.Value) string {
	if text, ok := v.(string); ok {
		return excerpt(text)
	}
	return excerpt(string(record.Append(nil, v)))
}

func (w *walk) time(now time.Time) string { return FormatTime(now, w.rules.Zone) }
