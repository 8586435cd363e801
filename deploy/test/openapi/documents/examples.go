package documents

import (
	"slices"
	"strings"
)

// also["X"] lists the fields that the example of a type X shows in addition to the fields that a creation
// needs. The additional fields are needed for rules that a schema cannot express.
var also = map[string][]string{
	"Asset":          {"items", "decisions"}, // so that it can be published
	"ContactPoint":   {"telephone"},
	"Document":       {"url"},
	"RelatedProcess": {"type"},
}

// patches maps the name of a type to the field that the example of a PATCH changes.
var patches = map[string]string{
	"Item": "quantity", "Decision": "title", "Document": "title", "RelatedProcess": "identifier",
}

// exampleName is the name of the only example of a body.
const exampleName = "short"

// bodyExample returns an example of the data that a schema describes.
func (w *writer) bodyExample(schema string) object {
	if example, is := webhookExamples[schema]; is {
		return example
	}
	if example, is := fileExamples[schema]; is {
		return example
	}
	if schema == "Asset"+string(patch) {
		return object{{"status", "pending"}}
	}
	for _, v := range []variant{sent, replacement, patch} {
		name, is := strings.CutSuffix(schema, string(v))
		switch {
		case is && v == patch:
			return object{{patches[name], w.fieldExample(name, patches[name])}}
		case is:
			return w.example(name)
		}
	}
	return object{}
}

// example returns an example of an object. It has the fields that a creation needs, and the additional fields in
// the map "also".
func (w *writer) example(name string) object {
	o := object{}
	for _, d := range w.objects {
		if d.Name != name {
			continue
		}
		for _, f := range d.Fields {
			if !mustSend(f) && !slices.Contains(also[name], f.Name) {
				continue
			}
			value := w.fieldExample(name, f.Name)
			if f.Of != "" {
				value = w.example(f.Of)
			}
			if f.List {
				value = []any{value}
			}
			o = o.with(f.Name, value)
		}
	}
	return o
}

// fieldExample returns the example of a field in the form that a client sends.
func (w *writer) fieldExample(name, field string) any {
	for _, d := range w.objects {
		for _, f := range d.Fields {
			if d.Name == name && f.Name == field {
				return exampleOf(f, sent)
			}
		}
	}
	return nil
}
