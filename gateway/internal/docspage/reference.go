package docspage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Reference is an OpenAPI document as the page shows it.
type Reference struct {
	Title  string
	Groups []group // by tag, in the document's order
	Types  []object
}

// group holds the operations of one tag.
type group struct {
	Name, Description string
	Operations        []operation
}

// parameter is a parameter of an operation.
type parameter struct {
	field
	In string // "query", "path", "header" or "cookie"
}

// body is the body of a request: fields, or the name of a type.
type body struct {
	Type    string
	Ref     string // anchor of the type; "": the type has none
	Fields  []field
	Example string
	IsForm  bool // the body is a form with a file
}

// response is one answer of an operation.
type response struct {
	Status, Description string
	Type, Ref           string
}

// object is a type of the document.
type object struct {
	ID, Name, Description string
	Type                  string // only for a type without fields
	Rule                  string
	Fields                []field
}

// field is a field of an object.
type field struct {
	Name, Type, Ref string
	Rule            string
	Description     string
	Required        bool
}

// methods are the methods that a path may have, in the order of the page.
var methods = []string{"get", "head", "post", "patch", "put", "delete", "options"}

// node is a JSON object in the document.
type node = map[string]any

// document is an OpenAPI document.
type document struct{ root node }

// newReference reads an OpenAPI 3.1 document in JSON.
func newReference(text []byte) (Reference, error) {
	d := document{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // numbers keep the form that they have in the document
	if err := decoder.Decode(&d.root); err != nil {
		return Reference{}, err
	}
	operations := d.operations()
	if len(operations) == 0 {
		return Reference{}, fmt.Errorf("it has no operation")
	}
	r := Reference{Title: str(sub(d.root, "info"), "title")}
	for _, tag := range d.tags(operations) {
		g := group{Name: str(tag, "name"), Description: str(tag, "description")}
		for _, o := range operations {
			if o.tag == g.Name {
				g.Operations = append(g.Operations, o)
			}
		}
		if len(g.Operations) > 0 {
			r.Groups = append(r.Groups, g)
		}
	}
	schemas := sub(sub(d.root, "components"), "schemas")
	for _, name := range sortedKeys(schemas) {
		schema := d.follow(schemas[name])
		if isValue(schema) {
			continue
		}
		r.Types = append(r.Types, object{
			ID: typeID(name), Name: name, Description: str(schema, "description"),
			Type: first(d.typeOf(schema)), Rule: rule(schema), Fields: d.fields(schema),
		})
	}
	return r, nil
}

// tags returns the document's tags, then the tags that only operations name.
func (d document) tags(operations []operation) []node {
	var all []node
	known := map[string]bool{}
	for _, tag := range each(d.root["tags"]) {
		all = append(all, d.follow(tag))
		known[str(d.follow(tag), "name")] = true
	}
	for _, o := range operations {
		if !known[o.tag] {
			known[o.tag] = true
			all = append(all, node{"name": o.tag})
		}
	}
	return all
}

// operations returns every operation, in the order of paths, then of methods.
func (d document) operations() []operation {
	var all []operation
	paths := sub(d.root, "paths")
	for _, path := range sortedKeys(paths) {
		item := d.follow(paths[path])
		for _, method := range methods {
			if o, ok := item[method].(node); ok {
				all = append(all, d.operation(path, method, item, o))
			}
		}
	}
	return all
}

// notInAnchor matches characters that the anchor of an operation must not have.
var notInAnchor = regexp.MustCompile(`[\s#:?&={}]`)

func (d document) operation(path, method string, item, o node) operation {
	made := operation{
		ID:     notInAnchor.ReplaceAllString(method+"-"+path, "-"),
		Method: strings.ToUpper(method), Path: path,
		Summary: str(o, "summary"), Description: str(o, "description"),
		NeedsKey: d.needsKey(o), Body: d.body(o), Deprecated: o["deprecated"] == true, Beside: item["servers"] != nil,
		tag: "Other",
	}
	if tags := each(o["tags"]); len(tags) > 0 {
		made.tag = fmt.Sprint(tags[0])
	}
	for _, p := range append(each(item["parameters"]), each(o["parameters"])...) {
		p := d.follow(p)
		schema := d.follow(p["schema"])
		f := d.field(str(p, "name"), p["schema"], p["required"] == true)
		f.Description = cmp.Or(str(p, "description"), str(schema, "description"))
		made.Parameters = append(made.Parameters, parameter{f, str(p, "in")})
	}
	responses := sub(o, "responses")
	for _, status := range sortedKeys(responses) {
		r := d.follow(responses[status])
		name, ref := d.typeOf(content(r))
		made.Responses = append(made.Responses, response{status, str(r, "description"), name, ref})
	}
	return made
}

// needsKey reports whether an operation refuses a request without an API key.
func (d document) needsKey(o node) bool {
	needs, own := o["security"]
	if !own {
		needs = d.root["security"]
	}
	all := each(needs)
	return len(all) > 0 && !slices.ContainsFunc(all, func(way any) bool { return len(d.follow(way)) == 0 })
}

func (d document) body(o node) *body {
	request := d.follow(o["requestBody"])
	media := mediaOf(request)
	if media == nil {
		return nil
	}
	name, ref := d.typeOf(media["schema"])
	b := &body{Type: name, Ref: ref, Example: d.example(media)}
	_, b.IsForm = sub(request, "content")["multipart/form-data"]
	if ref == "" {
		b.Fields = d.fields(d.follow(media["schema"]))
	}
	return b
}

// example returns the first example of a body, indented; "" if the body has none.
func (d document) example(media node) string {
	value, ok := media["example"]
	if examples := sub(media, "examples"); !ok && len(examples) > 0 {
		value, ok = d.follow(examples[sortedKeys(examples)[0]])["value"]
	}
	if !ok {
		return ""
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil { // cannot happen, because the value came from JSON
		return ""
	}
	return string(text)
}

// fields returns the fields of a schema and of its parts (allOf). Required fields come first; then the order is
// by name.
func (d document) fields(schema node) []field {
	found := map[string]field{}
	d.collect(schema, found, 0)
	return slices.SortedFunc(maps.Values(found), func(a, b field) int {
		if a.Required != b.Required {
			return map[bool]int{true: -1, false: 1}[a.Required]
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// maxParts bounds how deep parts of schemas may nest.
const maxParts = 8

func (d document) collect(schema node, into map[string]field, depth int) {
	if depth > maxParts {
		return
	}
	for _, part := range each(schema["allOf"]) {
		d.collect(d.follow(part), into, depth+1)
	}
	required := each(schema["required"])
	for name, property := range sub(schema, "properties") {
		into[name] = d.field(name, property, slices.Contains(required, any(name)))
	}
}

func (d document) field(name string, property any, required bool) field {
	schema := d.follow(property)
	for _, choice := range each(schema["anyOf"]) { // a value or null
		if of := d.follow(choice); isValue(of) {
			schema = of
		}
	}
	kind, ref := d.typeOf(property)
	description := cmp.Or(str(asNode(property), "description"), str(schema, "description"))
	return field{Name: name, Type: kind, Ref: ref, Rule: rule(schema), Description: description, Required: required}
}

// typeOf returns the type of a schema in words, and the anchor of the type to which the schema refers.
func (d document) typeOf(schema any) (name, ref string) {
	n := asNode(schema)
	if target := str(n, "$ref"); target != "" {
		name, named := strings.CutPrefix(target, "#/components/schemas/")
		if of := d.follow(n); !named || strings.Contains(name, "/") || isValue(of) { // a part of a type, or no object
			return d.typeOf(of)
		}
		return name, typeID(name)
	}
	for _, of := range []string{"oneOf", "anyOf"} {
		var names []string
		for _, choice := range each(n[of]) {
			if name := first(d.typeOf(choice)); name != "" { // null has no name
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			return strings.Join(slices.Compact(names), " or "), ""
		}
	}
	if parts := each(n["allOf"]); len(parts) > 0 && n["properties"] == nil {
		return d.typeOf(parts[0])
	}
	var names []string
	for _, kind := range slices.DeleteFunc(each(n["type"]), func(kind any) bool { return kind == "null" }) {
		names = append(names, fmt.Sprint(kind))
	}
	if slices.Equal(names, []string{"array"}) {
		name, ref := d.typeOf(n["items"])
		return "list of " + cmp.Or(name, "anything"), ref
	}
	name = strings.Join(names, " or ")
	if format := str(n, "format"); format != "" {
		name += " (" + format + ")"
	}
	return name, ""
}

// isValue reports whether a schema is a list of values, or a choice between types. The page shows it where it is used.
func isValue(schema node) bool { return schema["enum"] != nil || schema["anyOf"] != nil }

// rule returns the limits of a schema's values in words.
func rule(schema node) string {
	var rules []string
	if value, ok := schema["const"]; ok {
		rules = append(rules, fmt.Sprintf("always %v", value))
	}
	if values := each(schema["enum"]); len(values) > 0 {
		shown := values[:min(len(values), maxValues)]
		text := "one of " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(shown)), ", "), "[]")
		if len(values) > len(shown) {
			text += fmt.Sprintf(" and %d more", len(values)-len(shown))
		}
		rules = append(rules, text)
	}
	for _, r := range []struct{ key, words string }{
		{"default", "default %v"}, {"minimum", "at least %v"}, {"maximum", "at most %v"},
		{"minLength", "at least %v characters"}, {"maxLength", "at most %v characters"},
		{"minItems", "at least %v"}, {"maxItems", "at most %v"}, {"pattern", "pattern %v"},
	} {
		if value, ok := schema[r.key]; ok {
			rules = append(rules, fmt.Sprintf(r.words, value))
		}
	}
	if schema["readOnly"] == true {
		rules = append(rules, "the registry's")
	}
	return strings.Join(rules, "; ")
}

// maxValues is how many values of an enumeration the page lists.
const maxValues = 12

// follow returns the object to which a value refers, or the value itself.
func (d document) follow(value any) node {
	n := asNode(value)
	for range maxParts {
		target := str(n, "$ref")
		if target == "" {
			return n
		}
		n = d.root
		for _, step := range strings.Split(strings.TrimPrefix(target, "#/"), "/") {
			n = sub(n, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	return n
}

// content returns the schema of a response's body.
func content(r node) any { return mediaOf(r)["schema"] }

// mediaOf returns the content of a body in JSON. If the body has only other contents, it returns one of them. If the
// body has no content, it returns nil.
func mediaOf(of node) node {
	media := sub(of, "content")
	if inJSON := sub(media, "application/json"); inJSON != nil {
		return inJSON
	}
	for _, kind := range sortedKeys(media) {
		return asNode(media[kind])
	}
	return nil
}

func typeID(name string) string { return "type-" + name }

func first(name, _ string) string { return name }

// The function `each` returns the elements of a list, or a single value as a list of one.
func each(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return slices.Clone(v)
	}
	return []any{value}
}

func asNode(value any) node {
	n, _ := value.(node)
	return n
}

func sub(n node, key string) node { return asNode(n[key]) }

func str(n node, key string) string {
	text, _ := n[key].(string)
	return text
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
