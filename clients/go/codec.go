package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
)

// The methods of this file implement json.Marshaler and json.Unmarshaler. A field of the JSON that the struct does
// not declare is kept in the struct's field Unknown.

// These types have the same fields and no methods, so that encoding/json reads and writes these fields.
type (
	plainAsset          Asset
	plainItem           Item
	plainClassification Classification
	plainUnit           Unit
	plainAddress        Address
	plainLocation       Location
	plainDetails        RegistrationDetails
	plainDecision       Decision
	plainDocument       Document
	plainOrganisation   Organisation
	plainIdentifier     Identifier
	plainContact        Contact
	plainPeriod         Period
	plainRelatedProcess RelatedProcess
)

func (v *Asset) UnmarshalJSON(b []byte) error { return decode(b, (*plainAsset)(v), &v.Unknown) }
func (v *Item) UnmarshalJSON(b []byte) error  { return decode(b, (*plainItem)(v), &v.Unknown) }
func (v *Classification) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainClassification)(v), &v.Unknown)
}
func (v *Unit) UnmarshalJSON(b []byte) error     { return decode(b, (*plainUnit)(v), &v.Unknown) }
func (v *Address) UnmarshalJSON(b []byte) error  { return decode(b, (*plainAddress)(v), &v.Unknown) }
func (v *Location) UnmarshalJSON(b []byte) error { return decode(b, (*plainLocation)(v), &v.Unknown) }
func (v *RegistrationDetails) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainDetails)(v), &v.Unknown)
}
func (v *Decision) UnmarshalJSON(b []byte) error { return decode(b, (*plainDecision)(v), &v.Unknown) }
func (v *Document) UnmarshalJSON(b []byte) error { return decode(b, (*plainDocument)(v), &v.Unknown) }
func (v *Organisation) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainOrganisation)(v), &v.Unknown)
}
func (v *Identifier) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainIdentifier)(v), &v.Unknown)
}
func (v *Contact) UnmarshalJSON(b []byte) error { return decode(b, (*plainContact)(v), &v.Unknown) }
func (v *Period) UnmarshalJSON(b []byte) error  { return decode(b, (*plainPeriod)(v), &v.Unknown) }
func (v *RelatedProcess) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainRelatedProcess)(v), &v.Unknown)
}

func (v Asset) MarshalJSON() ([]byte, error) { return encode(plainAsset(v), v.Unknown) }
func (v Item) MarshalJSON() ([]byte, error)  { return encode(plainItem(v), v.Unknown) }
func (v Classification) MarshalJSON() ([]byte, error) {
	return encode(plainClassification(v), v.Unknown)
}
func (v Unit) MarshalJSON() ([]byte, error)                { return encode(plainUnit(v), v.Unknown) }
func (v Address) MarshalJSON() ([]byte, error)             { return encode(plainAddress(v), v.Unknown) }
func (v Location) MarshalJSON() ([]byte, error)            { return encode(plainLocation(v), v.Unknown) }
func (v RegistrationDetails) MarshalJSON() ([]byte, error) { return encode(plainDetails(v), v.Unknown) }
func (v Decision) MarshalJSON() ([]byte, error)            { return encode(plainDecision(v), v.Unknown) }
func (v Document) MarshalJSON() ([]byte, error)            { return encode(plainDocument(v), v.Unknown) }
func (v Organisation) MarshalJSON() ([]byte, error)        { return encode(plainOrganisation(v), v.Unknown) }
func (v Identifier) MarshalJSON() ([]byte, error)          { return encode(plainIdentifier(v), v.Unknown) }
func (v Contact) MarshalJSON() ([]byte, error)             { return encode(plainContact(v), v.Unknown) }
func (v Period) MarshalJSON() ([]byte, error)              { return encode(plainPeriod(v), v.Unknown) }
func (v RelatedProcess) MarshalJSON() ([]byte, error) {
	return encode(plainRelatedProcess(v), v.Unknown)
}

// Unknown holds the fields of an object that this version of the client does not know, and the fields whose value is
// empty, such as "". They are sent back with the object. If the struct has a value for the same field, that value is
// sent instead.
type Unknown map[string]json.RawMessage

// isEmpty reports whether JSON is a value that a struct does not send.
func isEmpty(value json.RawMessage) bool {
	switch string(value) {
	case `""`, `[]`, `{}`, `null`:
		return true
	}
	return false
}

// decode decodes a JSON object into a struct, which is given as a pointer. The map `unknown` gets the fields that
// the struct does not have, and the fields with an empty value.
func decode(text []byte, to any, unknown *Unknown) error {
	if err := json.Unmarshal(text, to); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	known := fieldNames(reflect.TypeOf(to).Elem())
	maps.DeleteFunc(all, func(name string, value json.RawMessage) bool { return known[name] && !isEmpty(value) })
	if *unknown = nil; len(all) > 0 {
		*unknown = all
	}
	return nil
}

// encode encodes the fields of a struct, and after them the unknown fields. An unknown field may have the name of a
// field of the struct. Then encode adds the unknown field only if its value is empty and the struct's field has none.
func encode(from any, unknown Unknown) ([]byte, error) {
	text, err := json.Marshal(from)
	if err != nil || len(unknown) == 0 {
		return text, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(text, &sent); err != nil {
		return nil, fmt.Errorf("encode unknown fields: %w", err)
	}
	unknown = maps.Clone(unknown)
	known := fieldNames(reflect.TypeOf(from))
	maps.DeleteFunc(unknown, func(name string, value json.RawMessage) bool {
		return sent[name] != nil || known[name] && !isEmpty(value)
	})
	more, err := json.Marshal(map[string]json.RawMessage(unknown))
	if err != nil {
		return nil, fmt.Errorf("encode unknown fields: %w", err)
	}
	switch {
	case len(text) == 2: // the object is {}
		return more, nil
	case len(more) == 2:
		return text, nil
	}
	text[len(text)-1] = ','
	return append(text, more[1:]...), nil
}

var namesOfTypes sync.Map // from a reflect.Type to a map[string]bool

// fieldNames returns the JSON names of a struct's fields.
func fieldNames(of reflect.Type) map[string]bool {
	if found, ok := namesOfTypes.Load(of); ok {
		return found.(map[string]bool)
	}
	names := map[string]bool{}
	for field := range of.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = true
		}
	}
	namesOfTypes.Store(of, names)
	return names
}
