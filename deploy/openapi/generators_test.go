package openapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"asset-registry/deploy/openapi"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestDocumentsSuitGenerators searches the documents for four things that generators of clients cannot handle: a
// value of several types, a reference into a schema, two components whose names become equal in generated code, and
// an answer that is repeated at each operation. The documents must have none of them.
func TestDocumentsSuitGenerators(t *testing.T) {
	for _, version := range routes.Targets() {
		d := expect.Get(openapi.Public(version))(t)
		var document map[string]any
		expect.OK(t, json.Unmarshal(d, &document))
		places := 0
		walk(document, "#", func(at string, o map[string]any) {
			places++
			types, _ := o["type"].([]any)
			if types = slices.DeleteFunc(types, func(name any) bool { return name == "null" }); len(types) > 1 {
				t.Errorf("%s %s: got the types %v, want one", version, at, types)
			}
			if ref, _ := o["$ref"].(string); strings.Count(ref, "/") > 3 {
				t.Errorf("%s %s: got a reference to %s, want one to a component", version, at, ref)
			}
			if strings.HasPrefix(at, "#/paths/") && strings.Contains(at, "/responses/") && o["$ref"] == nil {
				t.Errorf("%s %s: got an answer of this operation only, want a reference", version, at)
			}
		})
		if places < 1000 {
			t.Errorf("%s: got %d places, want at least 1000", version, places)
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
