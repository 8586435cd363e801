// Package record holds JSON objects as values: what a client sent before the
// rules have judged it, and what the registry keeps afterwards. Numbers stay
// the text they were sent as, so a decimal is never a float, and members keep
// their order.
package record

import (
	"slices"
)

// Value is a JSON value: nil, bool, string, Number, List or Object.
type Value = any

// Number is a JSON number as it was written.
type Number string

// List is a JSON array.
type List []Value

// Object is a JSON object. No two members have the same name. Methods that
// change an object return it anew and leave the receiver as it was.
type Object []Member

// Member is one member of an Object.
type Member struct {
	Name  string
	Value Value
}

// Get returns the value of a member, nil when there is none.
func (o Object) Get(name string) Value {
	value, _ := o.Lookup(name)
	return value
}

// Lookup returns the value of a member and whether there is one; a member can
// be there and null.
func (o Object) Lookup(name string) (Value, bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// lookups returns Lookup for many names: of a large object it takes no longer
// than of a small one.
func (o Object) lookups() func(name string) (Value, bool) {
	if len(o) <= large {
		return o.Lookup
	}
	values := make(map[string]Value, len(o))
	for _, m := range o {
		values[m.Name] = m.Value
	}
	return func(name string) (Value, bool) {
		value, there := values[name]
		return value, there
	}
}

// Text returns a member that is a string, "" when it is absent or something else.
func (o Object) Text(name string) string {
	text, _ := o.Get(name).(string)
	return text
}

// Object returns a member that is an object, nil when it is absent or something else.
func (o Object) Object(name string) Object {
	object, _ := o.Get(name).(Object)
	return object
}

// List returns a member that is a list, nil when it is absent or something else.
func (o Object) List(name string) List {
	list, _ := o.Get(name).(List)
	return list
}

// With returns the object with a member set, in its place if it was there and
// at the end if not.
func (o Object) With(name string, value Value) Object {
	set := slices.Clone(o)
	for i := range set {
		if set[i].Name == name {
			set[i].Value = value
			return set
		}
	}
	return append(set, Member{name, value})
}

// Without returns the object without the named members.
func (o Object) Without(names ...string) Object {
	kept := make(Object, 0, len(o))
	for _, m := range o {
		if !slices.Contains(names, m.Name) {
			kept = append(kept, m)
		}
	}
	return kept
}

// Equal tells whether two values are the same JSON value. The order of an
// object's members does not matter; numbers are compared as text.
func Equal(a, b Value) bool {
	switch a := a.(type) {
	case Object:
		b, ok := b.(Object)
		if !ok || len(a) != len(b) {
			return false
		}
		lookup := b.lookups()
		return !slices.ContainsFunc(a, func(m Member) bool {
			other, there := lookup(m.Name)
			return !there || !Equal(m.Value, other)
		})
	case List:
		b, ok := b.(List)
		return ok && slices.EqualFunc(a, b, Equal)
	case nil, bool, string, Number:
		switch b.(type) {
		case Object, List: // not comparable with ==
			return false
		}
		return a == b
	}
	return false
}
