// Package openapi tests a running registry against its OpenAPI documents. It sends valid and invalid requests that
// a generator makes from a document. No answer may be a 5xx, and the document must describe every answer. The
// package also checks that each documented status occurs, and that a new document does not break clients of the
// published one.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// maxDepth limits the depth of a generated value.
const maxDepth = 12

// valueOf returns a random value that a schema permits.
func valueOf(t *rapid.T, s *openapi3.Schema, depth int) any {
	if len(s.AnyOf) > 0 {
		return valueOf(t, s.AnyOf[rapid.IntRange(0, len(s.AnyOf)-1).Draw(t, "any of")].Value, depth)
	}
	if len(s.Enum) > 0 {
		return rapid.SampledFrom(s.Enum).Draw(t, "enum")
	}
	if len(s.Examples) > 0 && rapid.IntRange(0, 2).Draw(t, "example") > 0 {
		return rapid.SampledFrom(s.Examples).Draw(t, "example")
	}
	if s.Type == nil || len(*s.Type) == 0 {
		return rapid.SampledFrom([]any{nil, true, "text", json.Number("1")}).Draw(t, "anything")
	}
	switch kind := rapid.SampledFrom(*s.Type).Draw(t, "type"); kind {
	case "object":
		return objectOf(t, s, depth)
	case "array":
		return listOf(t, s, depth)
	case "string":
		return textOf(t, s)
	case "integer":
		return json.Number(fmt.Sprint(rapid.Int32().Draw(t, "integer")))
	case "number":
		return json.Number(rapid.SampledFrom([]string{"0", "-1.5", "240.5", "1e3", "0.00005"}).Draw(t, "number"))
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	default:
		return nil
	}
}

func objectOf(t *rapid.T, s *openapi3.Schema, depth int) any {
	o := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		wanted := slices.Contains(s.Required, name)
		if !wanted && (depth >= maxDepth || rapid.IntRange(0, 4).Draw(t, "present") > 0) {
			continue
		}
		o[name] = valueOf(t, s.Properties[name].Value, depth+1)
	}
	return o
}

func listOf(t *rapid.T, s *openapi3.Schema, depth int) any {
	length := rapid.IntRange(0, 2).Draw(t, "length")
	if s.MaxItems != nil {
		length = min(length, int(*s.MaxItems))
	}
	l := make([]any, length)
	for i := range l {
		l[i] = valueOf(t, s.Items.Value, depth+1)
	}
	return l
}

func textOf(t *rapid.T, s *openapi3.Schema) any {
	if s.Pattern != "" {
		return rapid.StringMatching(s.Pattern).Draw(t, "pattern")
	}
	texts := []string{"x", "Опис об'єкта", " ", "\u0000", "[ТЕСТУВАННЯ] ", strings.Repeat("я", 300)}
	return rapid.SampledFrom(texts).Draw(t, "text")
}

// spoiled returns a copy of a value in which one random place is probably wrong.
func spoiled(t *rapid.T, value any) any {
	switch v := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		o := maps.Clone(v)
		switch choice := rapid.IntRange(0, 5).Draw(t, "spoil"); {
		case choice == 0 || len(names) == 0:
			o["rogue"+rapid.SampledFrom([]string{"", ".", "é"}).Draw(t, "name")] = 1
		case choice == 1:
			delete(o, rapid.SampledFrom(names).Draw(t, "without"))
		default:
			name := rapid.SampledFrom(names).Draw(t, "member")
			o[name] = spoiled(t, v[name])
		}
		return o
	case []any:
		if len(v) > 0 && rapid.Bool().Draw(t, "inside") {
			l := slices.Clone(v)
			i := rapid.IntRange(0, len(l)-1).Draw(t, "element")
			l[i] = spoiled(t, v[i])
			return l
		}
	}
	return rapid.SampledFrom([]any{
		nil, true, "", "x", json.Number("1"), json.Number("1e400"), json.Number("0.5"), []any{}, []any{nil}, map[string]any{},
		strings.Repeat("0", 32), "2026-02-30", "\ufffe",
	}).Draw(t, "instead")
}
