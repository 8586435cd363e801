package site

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value of a record. Numbers keep their text. The zero value stands for a value that the record
// does not have.
type value struct {
	kind     jsontext.Kind
	text     string // text of a string, a number, true or false
	members  []member
	elements []*value
	shown    bool // the page shows the value already
}

type member struct {
	name  string
	value *value
}

var errRecord = errors.New("the record is not a JSON object")

// parse reads a record.
func parse(text []byte) (*value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	v, err := read(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) || v.kind != jsontext.KindBeginObject {
		return nil, errRecord
	}
	return v, nil
}

// read reads the next value. The decoder refuses values that are nested too deep.
func read(d *jsontext.Decoder) (*value, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &value{kind: t.Kind()}
	switch v.kind {
	case jsontext.KindBeginObject:
		for d.PeekKind() != jsontext.KindEndObject {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			m := member{name: name.String()}
			if m.value, err = read(d); err != nil {
				return nil, err
			}
			v.members = append(v.members, m)
		}
		_, err = d.ReadToken()
	case jsontext.KindBeginArray:
		for d.PeekKind() != jsontext.KindEndArray {
			e, err := read(d)
			if err != nil {
				return nil, err
			}
			v.elements = append(v.elements, e)
		}
		_, err = d.ReadToken()
	default:
		v.text = t.String()
	}
	return v, err
}

// get returns the member of v with the given name, or nil.
func (v *value) get(name string) *value {
	if v == nil {
		return nil
	}
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// string returns the text of a member. It is "" for an object, a list, and a member that does not exist.
func (v *value) string(name string) string {
	if m := v.get(name); m != nil {
		return m.text
	}
	return ""
}

// isScalar reports whether a value has a text: it is neither an object nor a list.
func (v *value) isScalar() bool {
	return v.kind != jsontext.KindBeginObject && v.kind != jsontext.KindBeginArray
}

// leaves calls visit() for each value that has a text, with the path to the value, such as
// items.0.unit.code.
func (v *value) leaves(path string, visit func(path string, leaf *value)) {
	switch {
	case v == nil:
	case v.isScalar():
		visit(path, v)
	default:
		for _, m := range v.members {
			m.value.leaves(join(path, m.name), visit)
		}
		for i, e := range v.elements {
			e.leaves(join(path, strconv.Itoa(i)), visit)
		}
	}
}

// join returns the path of a member or an element below path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
