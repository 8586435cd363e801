// Package documents writes the OpenAPI 3.1 documents of the registry: one for each
// version of the public API, and one for the admin API.
//
// Paths and schemas are derived from the field table of the asset service, the route table and the code lists.
// This package adds the prose about routes, in operations.go. The gateway and the auth service embed the documents. A
// test fails if the embedded files are out of date. To update them:
//
//	go test ./deploy/test/openapi/documents -update
package documents

import (
	"bytes"
	"encoding/json"
	"fmt"

	"asset-registry/shared/routes"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		name, err := marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		text.Write(append(append(name, ':'), value...))
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// marshal encodes a value as JSON, without escapes for HTML.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// The method `with` returns a copy of o with one more member.
func (o object) with(name string, value any) object {
	return append(o[:len(o):len(o)], member{name, value})
}

// encode returns a document as JSON.
func encode(o object) ([]byte, error) {
	text, err := marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return nil, fmt.Errorf("indent the document: %w", err)
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// licence is the licence in LICENSE.
var licence = object{{"name", "Apache License 2.0"}, {"identifier", "Apache-2.0"}}

// Public returns the document for a version of the public API.
func Public(version string) ([]byte, error) {
	w := newWriter(version)
	paths, err := w.paths()
	if err != nil {
		return nil, err
	}
	common, own := split(headers())
	own = own.with("Registry-Total", totalHeader)
	if hasSearch(version) {
		own = own.with("Registry-Interpreted", interpretedHeader)
	}
	params, commonParams := parameters(version)
	schemas, params := share(w.schemas(), params)
	schemas = goTypes(schemas)
	return encode(object{
		{"openapi", "3.1.0"},
		{"info", object{
			{"title", "Asset registry"},
			{"version", version},
			{"summary", "A public registry of assets put up for privatisation."},
			{"description", guide},
			{"license", licence},
		}},
		{"servers", []object{{{"url", routes.Prefix(version)}, {"description", "this registry"}}}},
		{"security", anyone},
		{"tags", tags},
		{"paths", paths},
		{"webhooks", walk(webhookMessages(), "", constType)},
		{"x-common-headers", common},
		{"x-common-parameters", commonParams},
		{"components", object{
			{"schemas", schemas},
			{"parameters", components("parameters", params)},
			{"headers", components("headers", own)},
			{"responses", append(w.replies, responses()...)},
			{"securitySchemes", securitySchemes},
		}},
	})
}
