package documents

import (
	"fmt"
	"slices"
	"strings"
)

// share gives the lists of values in the schemas and parameters of a document, and the choices between types, a schema
// of their own each, and puts references in their places. Otherwise generators would make a type for each place. A list
// that only one place of one schema has stays there.
func share(schemas, params object) (object, object) {
	s := sharing{counts: map[string]int{}, names: map[string]string{}}
	walk(schemas, "", func(_ string, o object) object { return s.count(o, 1) })
	walk(params, "", func(_ string, o object) object { return s.count(o, 2) }) // each operation has a place of its own
	schemas = walk(schemas, "", s.replace).(object)
	params = walk(params, "Parameter", s.replace).(object)
	return append(schemas, s.shared...), params
}

// sharing has the schemas to share, by the JSON of their keywords: how many places have them, and their names.
type sharing struct {
	counts map[string]int
	names  map[string]string
	shared object
}

// walk returns a copy of a value in which the function change has replaced each object. The argument at has the names
// of the component and of the property that the object is in.
func walk(value any, at string, change func(at string, o object) object) any {
	switch v := value.(type) {
	case object:
		all := make(object, len(v))
		for i, m := range v {
			below := at
			if !slices.Contains([]string{"properties", "items", "schema", "anyOf"}, m.name) {
				below += camel(m.name)
			}
			all[i] = member{m.name, walk(m.value, below, change)}
		}
		return change(at, all)
	case []object:
		all := make([]object, len(v))
		for i, o := range v {
			all[i] = walk(o, at, change).(object)
		}
		return all
	}
	return value
}

// camel returns a name as types have it: quantity_unit becomes QuantityUnit.
func camel(name string) (all string) {
	for word := range strings.SplitSeq(name, "_") {
		all += strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
	}
	return all
}

func (s *sharing) count(o object, places int) object {
	if _, key, _ := choice(o); key != "" {
		s.counts[key] += places
	}
	return o
}

// replace returns a reference to the schema that o shares with others, or o if it shares none. The first place names
// the schema.
func (s *sharing) replace(at string, o object) object {
	kind, key, rest := choice(o)
	if s.counts[key] < 2 {
		return o
	}
	if s.names[key] == "" {
		if kind[0].name == "anyOf" {
			at = "TextOrNumber"
		}
		s.names[key] = at
		s.shared = s.shared.with(at, kind)
	}
	shared := reference("schemas", s.names[key])
	isNullable := func(m member) bool { return m.name == "enum" && strings.HasSuffix(jsonOf(m.value), ",null]") }
	if slices.ContainsFunc(o, isNullable) {
		shared = nullable(shared)
	}
	return append(shared, rest...)
}

// choice divides a schema with a list of values, or with a choice between types, into the keywords that say so, without
// null, and the rest. The key is the JSON of the first; it is empty for any other schema.
func choice(o object) (kind object, key string, rest object) {
	for _, m := range o {
		switch list := m.value.(type) {
		case []string:
			if m.name == "type" {
				m.value = list[0]
			}
		case []any:
			if m.name == "enum" {
				m.value = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil })
			}
		}
		switch m.name {
		case "type", "enum", "anyOf":
			kind = append(kind, m)
		case "minLength": // a list of values has no empty text
		default:
			rest = append(rest, m)
		}
	}
	if key = jsonOf(kind); !strings.Contains(key, `"enum"`) && !strings.HasPrefix(key, `{"anyOf":[{"type"`) ||
		strings.Contains(key, `"null"`) {
		return nil, "", nil
	}
	return kind, key, rest
}

// jsonOf returns the JSON of a part of a document.
func jsonOf(value any) string {
	text, err := marshal(value)
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err)) // a mistake in a table
	}
	return string(text)
}
