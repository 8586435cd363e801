package documents_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/deploy/test/openapi/documents"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestDocumentsSuitGenerators searches the documents for seven things that generators of clients cannot handle, or that
// they turn into a type for each place: a value of several types, a reference into a schema, two components whose names
// become equal in generated code, an answer that is repeated at each operation, a list of values or an object at two
// places, an operation whose successes have different schemas, and a type in Go without a field of the schema. The
// documents must have none of them.
func TestDocumentsSuitGenerators(t *testing.T) {
	for _, version := range routes.Targets() {
		d := expect.Get(documents.Public(version))(t)
		var document map[string]any
		expect.OK(t, json.Unmarshal(d, &document))
		places := 0
		placesOf := map[string][]string{}
		walk(document, "#", func(at string, o map[string]any) {
			places++
			types, _ := o["type"].([]any)
			if types = slices.DeleteFunc(types, func(name any) bool { return name == "null" }); len(types) > 1 {
				t.Errorf("%s %s: got the types %v, want one", version, at, types)
			}
			if kind := kindOf(o); kind != "" && strings.HasPrefix(at, "#/components/") && !strings.Contains(at, "/x-") {
				placesOf[kind] = append(placesOf[kind], at)
			}
			if schemas := successes(document, o); len(schemas) > 1 {
				t.Errorf("%s %s: got the successes %v, want one schema", version, at, schemas)
			}
			if ref, _ := o["$ref"].(string); strings.Count(ref, "/") > 3 {
				t.Errorf("%s %s: got a reference to %s, want one to a component", version, at, ref)
			}
			if strings.HasPrefix(at, "#/paths/") && strings.Contains(at, "/responses/") && o["$ref"] == nil {
				t.Errorf("%s %s: got an answer of this operation only, want a reference", version, at)
			}
		})
		for _, problem := range misfits(document) {
			t.Errorf("%s: got %s, want a type that fits", version, problem)
		}
		if places < 1000 {
			t.Errorf("%s: got %d places, want at least 1000", version, places)
		}
		for kind, all := range placesOf {
			if len(all) > 1 {
				t.Errorf("%s: got %.60s at %v, want it at one place", version, kind, all)
			}
		}
		for name, all := range sameNames(document) {
			if len(all) > 1 {
				t.Errorf("%s: got %v for the name %s, want one component", version, all, name)
			}
		}
	}
}

// walk calls the function `look` for each object of a document. The argument `at` is the place of the object.
func walk(value any, at string, look func(at string, o map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		look(at, v)
		for name, member := range v {
			walk(member, at+"/"+strings.ReplaceAll(name, "/", "~1"), look)
		}
	case []any:
		for i, element := range v {
			walk(element, fmt.Sprint(at, "/", i), look)
		}
	}
}

// misfits returns a problem of each schema whose type in Go (x-go-type) is that of another schema and does not fit: the
// other lacks a field, or requires a field that this schema does not, so that a client would always send it.
func misfits(document map[string]any) (all []string) {
	schemas, _ := inside(document, "components", "schemas").(map[string]any)
	for name, schema := range schemas {
		of, ok := schemas[fmt.Sprint(inside(schema, "x-go-type"))]
		properties, _ := inside(schema, "properties").(map[string]any)
		for field := range properties {
			if ok && inside(of, "properties", field) == nil {
				all = append(all, name+": its type in Go lacks "+field)
			}
		}
		mine, _ := inside(schema, "required").([]any)
		theirs, _ := inside(of, "required").([]any)
		for _, field := range theirs {
			if !slices.Contains(mine, field) {
				all = append(all, fmt.Sprint(name, ": its type in Go requires ", field))
			}
		}
	}
	return all
}

// inside returns the value inside objects that has these names from outside to inside, or nil.
func inside(value any, names ...string) any {
	for _, name := range names {
		o, _ := value.(map[string]any)
		value = o[name]
	}
	return value
}

// texts finds the descriptions, examples, types in Go and commas in the JSON of a schema.
var texts = regexp.MustCompile(`"(description|x-go-type)":"(\\.|[^"\\])*"|"examples":\[[^\]]*\]|,`)

// kindOf returns the values of a list, or the properties of an object without texts; "" for other schemas.
func kindOf(o map[string]any) string {
	if list, ok := o["enum"].([]any); ok {
		return fmt.Sprint(slices.DeleteFunc(slices.Clone(list), func(value any) bool { return value == nil }))
	}
	text, err := json.Marshal(o)
	if _, ok := o["properties"].(map[string]any); !ok || o["type"] != "object" || err != nil {
		return ""
	}
	return texts.ReplaceAllString(string(text), "")
}

// successes returns the references to the schemas of JSON that the successful answers of an operation have.
func successes(document, operation map[string]any) (all []string) {
	answers, _ := operation["responses"].(map[string]any)
	for status, answer := range answers {
		_, name, _ := strings.Cut(fmt.Sprint(inside(answer, "$ref")), "#/components/responses/")
		ref, ok := inside(document, "components", "responses", name, "content", "application/json", "schema", "$ref").(string)
		if ok && strings.HasPrefix(status, "2") {
			all = append(all, ref)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sameNames groups the components by the letters and digits of their names.
func sameNames(document map[string]any) map[string][]string {
	components, _ := document["components"].(map[string]any)
	all := map[string][]string{}
	for kind, members := range components {
		of, _ := members.(map[string]any)
		for name := range of {
			plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
			all[plain] = append(all[plain], kind+"/"+name)
		}
	}
	return all
}
