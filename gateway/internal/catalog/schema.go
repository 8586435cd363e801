package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	inDocument = "#/components/schemas/"
	inSchema   = "#/$defs/"
	lineType   = "Asset"
)

// lineSchema returns the JSON Schema of an asset from an OpenAPI document of version 3.1, whose schemas are JSON
// Schema.
func lineSchema(document []byte) (object, error) {
	var d struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	defs := object{}
	for missing := []string{lineType}; len(missing) > 0; missing = missing[1:] {
		name := missing[0]
		text, isThere := d.Components.Schemas[name]
		if !isThere {
			return nil, fmt.Errorf("the document has no schema %s", name)
		}
		if _, isDone := defs[name]; isDone {
			continue
		}
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			return nil, err
		}
		defs[name] = schema
		missing = append(missing, moveReferences(schema)...)
	}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of assets.jsonl.gz",
		"$ref": inSchema + lineType, "$defs": defs,
	}, nil
}

// moveReferences replaces the prefix inDocument of each reference in a schema by the prefix inSchema. It returns
// the names that follow the prefix.
func moveReferences(schema any) (names []string) {
	switch v := schema.(type) {
	case []any:
		for _, element := range v {
			names = append(names, moveReferences(element)...)
		}
	case map[string]any:
		for member, value := range v {
			to, isText := value.(string)
			if name, isReference := strings.CutPrefix(to, inDocument); isText && isReference && member == "$ref" {
				v[member] = inSchema + name
				names = append(names, name)
				continue
			}
			names = append(names, moveReferences(value)...)
		}
	}
	return names
}
