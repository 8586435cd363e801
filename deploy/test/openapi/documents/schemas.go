package documents

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"asset-registry/assetsvc"
)

// variant is the purpose of a schema for an object.
type variant string

// The variants of schemas.
const (
	shown       variant = ""            // for answers
	sent        variant = "Input"       // for requests that create an object
	patch       variant = "Patch"       // for requests that change some fields of an object
	replacement variant = "Replacement" // for requests that replace all fields that the caller may write
)

// writer makes the document of one version.
type writer struct {
	version string
	objects []assetsvc.Description // types of objects in the version, with only the fields of the version
	replies object                 // successful answers, for components/responses
}

func newWriter(version string) *writer {
	w := &writer{version: version}
	for _, d := range assetsvc.Describe() {
		d.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f assetsvc.Field) bool {
			return string(f.Since) > version // compared as text, because each number in a version has one digit
		})
		if len(w.objects) == 0 || w.has(d.Name) || slices.Contains(bodies, d.Name) {
			w.objects = append(w.objects, d)
		}
	}
	return w
}

// bodies are the types of objects that no asset contains.
var bodies = []string{"Access", "Ownership", "Recovery", "Transfer"}

// The method `has` reports whether a type that is already in w.objects has a field with objects of this type. Types are
// listed after the types that contain them.
func (w *writer) has(object string) bool {
	return slices.ContainsFunc(w.objects, func(d assetsvc.Description) bool {
		return slices.ContainsFunc(d.Fields, func(f assetsvc.Field) bool { return f.Of == object })
	})
}

// schemas returns the schemas of all objects and answers.
func (w *writer) schemas() object {
	var all object
	for _, d := range w.objects {
		for _, v := range variantsOf(d.Name) {
			if v == patch && w.changedAsSent(d.Name) {
				continue
			}
			all = all.with(d.Name+string(v), w.schema(d, v))
		}
	}
	all = append(all, w.bodySchemas()...)
	return append(all, w.answerSchemas()...)
}

// variantsOf returns the variants of a type that the document needs.
func variantsOf(object string) []variant {
	switch object {
	case "Access":
		return []variant{shown}
	case "Ownership", "Recovery", "Transfer":
		return []variant{sent}
	case "Asset":
		return []variant{shown, sent, patch, replacement}
	default:
		return []variant{shown, sent, patch}
	}
}

// schema returns the schema of an object in a variant.
func (w *writer) schema(d assetsvc.Description, v variant) object {
	properties, required := w.properties(d, v)
	text := variantText[v]
	if v == sent && w.changedAsSent(d.Name) {
		text = " As a client sends it."
	}
	o := object{{"type", "object"}, {"description", d.About + text}}
	if len(required) > 0 {
		o = o.with("required", required)
	}
	return o.with("properties", properties).with("additionalProperties", false)
}

// properties returns the properties of an object in a variant, and the names of the properties that are
// required.
func (w *writer) properties(d assetsvc.Description, v variant) (properties object, required []string) {
	for _, f := range d.Fields {
		if v == shown && f.Hidden {
			continue
		}
		properties = properties.with(f.Name, w.property(d.Name, f, v))
		if v == shown && f.Given || v == sent && mustSend(f) {
			required = append(required, f.Name)
		}
	}
	return properties, required
}

// changedAsSent reports whether a creation need not have any field of a part. Then a creation and a change have one
// schema.
func (w *writer) changedAsSent(name string) bool {
	return slices.ContainsFunc(w.objects, func(d assetsvc.Description) bool {
		return d.Name == name && !slices.ContainsFunc(d.Fields, mustSend)
	})
}

// shownProperties returns the properties that objects of this type have in answers.
func (w *writer) shownProperties(name string) object {
	i := slices.IndexFunc(w.objects, func(d assetsvc.Description) bool { return d.Name == name })
	properties, _ := w.properties(w.objects[i], shown) // a missing type panics, and so stops the generator
	return properties
}

var variantText = map[variant]string{
	sent:        " As a client sends it to create one.",
	patch:       " As a client sends it to change one. It merges into what is stored; lists merge by index.",
	replacement: " As a client sends it to replace what it may write.",
}

// mustSend reports whether a creation without the field fails. The status is not needed: the registry sets the
// status of a new asset, whatever the client sends.
func mustSend(f assetsvc.Field) bool { return f.Required && f.Name != "status" }

// property returns the schema of a field.
func (w *writer) property(parent string, f assetsvc.Field, v variant) object {
	text := f.About
	ignored := v != shown && isIgnored(parent, f, v)
	if ignored {
		text = strings.TrimSpace(text + ignoredText(f, v))
	}
	if parent == "Asset" && len(f.Writers) > 0 {
		text += " Written by: " + strings.Join(inStates(f.Writers), "; ") + "."
	}
	if v == shown && f.Group != "" {
		text += " An operator may hide it from callers without an API key."
	}
	if f.Default != "" && v == sent { // the keyword "default" would make generators require the field
		text += " Default of a creation: " + f.Default + "."
	}
	o := w.value(f, v, ignored)
	text = strings.TrimSpace(text + alsoText(o))
	if f.List && !ignored {
		o = object{{"type", "array"}, {"items", o}}
	}
	if v != shown && !f.Required || ignored {
		o = nullable(o)
	}
	o = o.with("description", text)
	if f.Example != nil && !f.Hidden && v != patch { // a change has the examples of a creation
		o = o.with("examples", []any{exampleOf(f, v)})
	}
	if f.Since != "" {
		o = o.with("x-since", string(f.Since))
	}
	if f.Sandbox {
		o = o.with("x-sandbox-only", true)
	}
	if parent == "Asset" && len(f.Writers) > 0 {
		o = o.with("x-written-by", f.Writers)
	}
	return o
}

// exampleOf returns an example in the form that the variant needs: in requests, decimals are sent as text.
func exampleOf(f assetsvc.Field, v variant) any {
	if v != shown && f.Form.Kind == "quantity" {
		return fmt.Sprint(f.Example)
	}
	return f.Example
}

// inStates returns the callers that may write a field. After each caller it lists the states of the asset in which this
// caller may write the field: "owner (draft, pending)".
func inStates(writers []string) (all []string) {
	for _, writer := range writers {
		var states []string
		for _, s := range assetsvc.Statuses() {
			if slices.ContainsFunc(s.Writers(), func(r assetsvc.Role) bool { return string(r) == writer }) {
				states = append(states, string(s))
			}
		}
		if len(states) > 0 {
			writer += " (" + strings.Join(states, ", ") + ")"
		}
		all = append(all, writer)
	}
	return all
}

// ignoredText returns a sentence which says that the registry ignores the field. It returns "" for a hidden field,
// because the prose of the field already says this.
func ignoredText(f assetsvc.Field, v variant) string {
	if f.Hidden {
		return ""
	}
	return map[variant]string{
		sent: " A creation ignores it.", patch: " A change ignores it.", replacement: " A replacement ignores it.",
	}[v]
}

// lasting maps the name of a part's type to the fields that a PATCH does not change (docs/contract.md, "Document
// versions").
var lasting = map[string][]string{"Document": {"url", "hash"}}

// isIgnored reports whether no caller can write the field with this variant. The registry then checks only the type of
// the field and drops its value.
func isIgnored(parent string, f assetsvc.Field, v variant) bool {
	if f.Hidden || f.Ignored || v == patch && slices.Contains(lasting[parent], f.Name) {
		return true
	}
	if parent != "Asset" {
		return false
	}
	if v == sent {
		return !slices.Contains(f.Writers, "creation")
	}
	return len(f.Writers) == 0 || len(f.Writers) == 1 && f.Writers[0] == "creation"
}

// value returns the schema of a field's value, or of one element of its list.
func (w *writer) value(f assetsvc.Field, v variant, ignored bool) object {
	if f.Of == "" {
		return plainValue(f, v, ignored)
	}
	switch {
	case ignored && f.List:
		return object{{"type", "array"}, {"items", object{{"type", "object"}}}}
	case ignored:
		return object{{"type", "object"}}
	case v == replacement || v == patch && w.changedAsSent(f.Of): // objects inside a replacement are sent whole
		v = sent
	}
	return object{{"$ref", "#/components/schemas/" + f.Of + string(v)}}
}

// plainValue returns the schema of a plain field's value, or of one element of its list.
func plainValue(f assetsvc.Field, v variant, ignored bool) object {
	of := formOf(f.Form)
	switch {
	case v == shown:
		return sorted(of.shown)
	case ignored && !f.Hidden && of.typed != nil:
		return sorted(of.typed)
	case ignored && !f.Hidden:
		return loose(of.sent)
	}
	o := sorted(of.sent)
	if f.Required {
		o = o.with("minLength", 1)
	}
	return o
}

// loose returns a schema that permits the same types as s and has no other rule.
func loose(s map[string]any) object {
	if s["type"] == nil {
		return object{}
	}
	o := object{{"type", s["type"]}}
	if also, ok := s[AlsoAccepts]; ok {
		o = o.with(AlsoAccepts, also)
	}
	return o
}

// alsoText returns a sentence such as "Also taken: an integer, a boolean." It lists the types that the registry accepts
// in addition to the type in the schema. The schema itself names only one type, because a field of a generated client
// has only one type.
func alsoText(o object) string {
	for _, m := range o {
		if m.name != AlsoAccepts {
			continue
		}
		var names []string
		for _, name := range m.value.([]string) {
			names = append(names, map[string]string{
				"string": "a text", "integer": "an integer", "number": "a number", "boolean": "a boolean", "array": "an empty list",
			}[name])
		}
		return " Also taken: " + strings.Join(names, ", ") + "."
	}
	return ""
}

// keywordOrder has the keywords of JSON Schema, in the order in which the document lists them.
var keywordOrder = []string{
	"type", "anyOf", "const", "enum", "format", "pattern", "maxLength", "maxProperties", "maxItems", "x-go-type",
	AlsoAccepts,
}

func sorted(s map[string]any) (o object) {
	for _, keyword := range keywordOrder {
		if value, ok := s[keyword]; ok {
			o = o.with(keyword, value)
		}
	}
	if len(o) != len(s) {
		panic("openapi: a keyword is not in keywordOrder: " + strconv.Quote(fmt.Sprint(s)))
	}
	return o
}

// nullable returns a schema that also permits null.
func nullable(o object) object {
	if len(o) == 0 {
		return o
	}
	o = slices.Clone(o)
	for i, m := range o {
		switch value := m.value.(type) {
		case []string:
			if m.name == "type" {
				o[i].value = append(slices.Clone(value), "null")
			} else if m.name == "enum" {
				choices := make([]any, len(value), len(value)+1)
				for j, choice := range value {
					choices[j] = choice
				}
				o[i].value = append(choices, nil)
			}
		case string:
			if m.name == "type" {
				o[i].value = []string{value, "null"}
			} else if m.name == "$ref" {
				return object{{"anyOf", []object{o, {{"type", "null"}}}}}
			}
		}
	}
	return o
}
