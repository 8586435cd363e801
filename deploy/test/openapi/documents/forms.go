package documents

import (
	"maps"

	"asset-registry/assetsvc"
)

// AlsoAccepts is a schema keyword. It lists the types that the registry accepts in addition to the schema's own
// type.
const AlsoAccepts = "x-also-accepts"

// form has the JSON Schemas (draft 2020-12) of plain values. Some rules cannot be written as a schema, so `sent` may
// accept more than the registry does, but never less. Both `sent` and `typed` name a single type, because generators of
// clients need this.
type form struct {
	sent  schema // values that clients may send
	typed schema // values that clients may send for an ignored field; nil: any of the types in `sent`
	shown schema // values that answers hold; nil: those that clients may send
}

// schema is a JSON Schema.
type schema = map[string]any

// eitherOf returns the schema of values that have one of these types. Answers return such a value unchanged.
func eitherOf(types ...string) schema {
	choices := make([]schema, len(types))
	for i, name := range types {
		choices[i] = schema{"type": name}
	}
	return schema{"anyOf": choices}
}

// orType returns the schema of a type that accepts other types, too.
func orType(name string, others ...string) schema { return schema{"type": name, AlsoAccepts: others} }

// shownTime is the form of the timestamps in answers (docs/contract.md, "Timestamps").
const shownTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}[+-][0-9]{2}:[0-9]{2}$`

// formOf returns the schemas of the values of a plain field.
func formOf(f assetsvc.Form) form {
	text, shownText := orType("string", "integer", "boolean"), schema{"type": "string"}
	of, known := map[string]form{
		"string": {schema{"type": "string"}, text, nil},
		"text":   {text, nil, shownText},
		"timestamp": {schema{"type": "string", "pattern": f.Pattern}, nil,
			schema{"type": "string", "format": "date-time", "pattern": shownTime}},
		"quantity": {schema{"type": "string", "format": "decimal", "pattern": f.Pattern, AlsoAccepts: []string{"number"}},
			nil, schema{"type": "number", "format": "decimal", "x-go-type": "json.Number"}},
		"identifier": {orType("string", "integer"), nil, eitherOf("string", "integer")},
		"coordinate": {schema{"type": "number", "format": "double", AlsoAccepts: []string{"string"}}, nil,
			eitherOf("string", "number")},
		"height": {orType("string", "number"), nil, eitherOf("string", "number")},
		"integer": {schema{"type": "integer", "format": "int64", "pattern": f.Pattern, AlsoAccepts: []string{"string"}}, nil,
			schema{"type": "integer", "format": "int64"}},
		"any":      {schema{}, nil, nil},
		"disabled": {schema{"type": "object", "maxProperties": 0, "maxItems": 0, AlsoAccepts: []string{"array"}}, nil, nil},
		"id":       {text, nil, schema{"type": "string", "pattern": f.Pattern}},
		"reference": {schema{"type": "string", "pattern": f.Pattern, AlsoAccepts: []string{"integer"}}, text,
			shownText},
		"pattern": {schema{"type": "string", "pattern": f.Pattern}, text, nil},
		"choice":  {schema{"type": "string", "enum": f.Choices}, text, nil},
	}[f.Kind]
	if !known {
		panic("openapi: no schema for values of the kind " + f.Kind)
	}
	if of.shown == nil {
		of.shown = of.sent
	}
	if f.Most > 0 { // values that are shown get no limit: a stored text may be longer
		of.sent = maps.Clone(of.sent)
		of.sent["maxLength"] = f.Most
	}
	if f.Only != "" {
		of.shown = schema{"type": "string", "const": f.Only}
	}
	return of
}
