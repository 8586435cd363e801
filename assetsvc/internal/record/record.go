// Package record holds JSON values in memory: assets, and requests before the rules check them. A number stays
// in the textual form in which it was sent, so a decimal never becomes a float. The members of an object keep
// their order.
package record

import (
	"cmp"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// Value is a JSON value: nil, bool, string, Number, List or Object.
type Value = any

// Number is the text of a JSON number, as it was written.
type Number string

// List is a JSON array.
type List []Value

// Object is a JSON object. No two members have the same name. Methods that change
// an object return a changed copy.
type Object []Member

// Member is one member of an Object.
type Member struct {
	Name  string
	Value Value
}

// Get returns the value of a member, or nil if the member does not exist.
func (o Object) Get(name string) Value {
	value, _ := o.Lookup(name)
	return value
}

// Lookup returns the value of a member, and whether the member exists. A member that exists may be null.
func (o Object) Lookup(name string) (Value, bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// lookups returns a function that works like Lookup, but takes constant time even for a large object. Use it for many
// lookups in one object.
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

// Text returns the value of a string member, or "" if the member is absent or has another type.
func (o Object) Text(name string) string {
	text, _ := o.Get(name).(string)
	return text
}

// Object returns the value of an object member, or nil if the member is absent or has another type.
func (o Object) Object(name string) Object {
	object, _ := o.Get(name).(Object)
	return object
}

// List returns the value of a list member, or nil if the member is absent or has another type.
func (o Object) List(name string) List {
	list, _ := o.Get(name).(List)
	return list
}

// With returns the object with a new value for a member. A new member comes last.
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

// Equal reports whether two values are the same JSON value. The order of the members
// of an object does not matter. Numbers are compared as text: 1 differs from 1.0.
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
		case Object, List: // == would panic for these types
			return false
		}
		return a == b
	}
	return false
}

// Sums are hashes of the fields of a request, which tell whether two requests are the same (docs/contract.md,
// "Idempotency"). A request is compared with a stored one by each hash that both have.
type Sums struct {
	Canonical string // hash of the canonical form, after the version of that form
	Bytes     string // hash of the fields in the order and with the numbers that were sent
}

// canonicalVersion changes whenever Canonical makes another form.
const canonicalVersion = "1:"

// SumsOf returns the sums of the fields of a request. The hashes depend on the text `head`, too. The next release
// stores no Bytes: the program before this one knows nothing else.
func SumsOf(newHash func() hash.Hash, head string, fields Object) Sums {
	sum := func(value Value) string {
		h := newHash()
		h.Write(Append([]byte(head), value))
		return hex.EncodeToString(h.Sum(nil))
	}
	return Sums{canonicalVersion + sum(Canonical(fields)), sum(fields)}
}

// Match reports whether the stored sums are those of the same request.
func (s Sums) Match(stored Sums) bool {
	return s.Canonical == stored.Canonical || s.Bytes == stored.Bytes
}

// Canonical returns the form that all values with the same meaning share: the members of an object are sorted and
// not null, and equal numbers have one text. The order of a list stays.
func Canonical(value Value) Value {
	switch v := value.(type) {
	case Object:
		kept := make(Object, 0, len(v))
		for _, m := range v {
			if m.Value != nil {
				kept = append(kept, Member{m.Name, Canonical(m.Value)})
			}
		}
		slices.SortFunc(kept, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
		return kept
	case List:
		kept := make(List, 0, len(v))
		for _, element := range v {
			kept = append(kept, Canonical(element))
		}
		return kept
	case Number:
		return v.canonical()
	}
	return value
}

// farthest is the bound of the exponents that Number.canonical reads. No field takes a number beyond it.
const farthest = 1_000_000_000_000_000_000

// canonical returns the number as an integer without zeros at its end, and a power of ten. It never writes out the
// power. A number with an exponent of 19 digits or more stays as it is.
func (n Number) canonical() Number {
	text, exponent := string(n), "0"
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		text, exponent = text[:i], text[i+1:]
	}
	text, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	if digits == "" {
		return "0"
	}
	power, err := strconv.ParseInt(exponent, 10, 64)
	if err != nil || power <= -farthest || power >= farthest {
		return n
	}
	power += int64(len(all) - len(digits) - len(fraction))
	if negative {
		digits = "-" + digits
	}
	return Number(digits + "e" + strconv.FormatInt(power, 10))
}
