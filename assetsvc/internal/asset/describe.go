package asset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Form describes the values of a plain kind, in JSON Schemas (draft 2020-12). If Shown is nil, answers hold
// values of the form Sent. Some rules cannot be written as a schema, so Sent may accept more than the kind
// does, but never less. Sent and Typed name a single type, because generators of clients need this. AlsoAccepts
// lists the other types that the registry accepts.
type Form struct {
	Sent  map[string]any // values that clients may send
	Typed map[string]any // values that clients may send for an ignored field; nil: any of the types in Sent
	Shown map[string]any // values that answers hold
}

// AlsoAccepts is a schema keyword. It lists the types that the registry accepts in addition to the schema's own
// type.
const AlsoAccepts = "x-also-accepts"

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

// The forms of the kinds in kinds.go.
var (
	stringForm = Form{Sent: schema{"type": "string"}, Typed: textForm.Sent}
	textForm   = Form{
		Sent:  schema{"type": "string", AlsoAccepts: []string{"integer", "boolean"}},
		Shown: schema{"type": "string"},
	}
	timestampForm = Form{
		Sent:  schema{"type": "string", "pattern": sentTime},
		Shown: schema{"type": "string", "format": "date-time", "pattern": shownTime},
	}
	quantityForm = Form{
		Sent: schema{
			"type": "string", "format": "decimal", "pattern": decimalForm.String(), AlsoAccepts: []string{"number"},
		},
		Shown: schema{"type": "number", "format": "decimal", "x-go-type": "json.Number"},
	}
	identifierForm = Form{
		Sent:  schema{"type": "string", AlsoAccepts: []string{"integer"}},
		Shown: eitherOf("string", "integer"),
	}
	coordinateForm = Form{
		Sent:  schema{"type": "number", "format": "double", AlsoAccepts: []string{"string"}},
		Shown: eitherOf("string", "number"),
	}
	heightForm = Form{
		Sent:  schema{"type": "string", AlsoAccepts: []string{"number"}},
		Shown: coordinateForm.Shown,
	}
	integerForm = Form{
		Sent: schema{
			"type": "integer", "format": "int64", "pattern": wholeNumber.String(), AlsoAccepts: []string{"string"},
		},
		Shown: schema{"type": "integer", "format": "int64"},
	}
	anyForm      = Form{Sent: schema{}}
	disabledForm = Form{Sent: schema{
		"type": "object", "maxProperties": 0, "maxItems": 0, AlsoAccepts: []string{"array"},
	}}
	givenIDForm = Form{
		Sent:  textForm.Sent,
		Shown: schema{"type": "string", "pattern": idForm.String()},
	}
	referenceForm = Form{
		Sent: schema{
			"type": "string", "pattern": fmt.Sprintf("^([0-9a-fA-F]{%d})?$", idLength), AlsoAccepts: []string{"integer"},
		},
		Typed: textForm.Sent,
		Shown: schema{"type": "string"},
	}
	digestForm = patternForm("^$|" + digestPattern())
)

// The forms of timestamps (docs/contract.md, "Timestamps").
const (
	sentTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}` +
		`([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2}|:)?)?)?$`
	shownTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}[+-][0-9]{2}:[0-9]{2}$`
)

func patternForm(pattern string) Form {
	return Form{Sent: schema{"type": "string", "pattern": pattern}, Typed: textForm.Sent}
}

func choiceForm(choices []string) Form {
	return Form{Sent: schema{"type": "string", "enum": slices.Clone(choices)}, Typed: textForm.Sent}
}

func digestPattern() string {
	var forms []string
	for _, algorithm := range slices.Sorted(maps.Keys(digestLengths)) {
		forms = append(forms, fmt.Sprintf("%s:[0-9a-fA-F]{%d}", algorithm, digestLengths[algorithm]))
	}
	return "^(" + strings.Join(forms, "|") + ")$"
}

// Description describes one field table, for people and for programs that generate code.
type Description struct {
	Name   string
	About  string // a sentence
	Fields []FieldDescription
}

// FieldDescription describes one row of a field table.
type FieldDescription struct {
	Name     string
	Since    Version  // the first version of the API that has the field; "": all have it
	Required bool     // clients must send it
	Given    bool     // all answers with the object have the field
	Ignored  bool     // the registry ignores the values that clients send
	Sandbox  bool     // only a sandbox has the field
	Hidden   bool     // no answer has the field
	Group    Group    // an operator may hide the field with this group; "": never
	List     bool     // the value of the field is a list
	Default  string   // the value of the field if the client leaves it out; "": no value
	Writers  []string // who writes the field; only for fields of the asset itself
	Of       string   // name of the Description of the objects in the field; "": the values are plain
	Form     Form     // form of the values, if they are plain
	About    string   // a sentence
	Example  any      // nil: none
}

// Describe returns the description of every field table. The asset comes first. Then come the objects in it, in the
// order in which they first occur. Other bodies come last.
func Describe() []Description {
	var all []Description
	for _, m := range []*model{assetModel, accessModel, handoverModel, recoveryModel, transferModel} {
		all = m.describe(all)
	}
	return all
}

// describe appends the descriptions of a model and of all models in it, unless the list has them already.
func (m *model) describe(all []Description) []Description {
	if slices.ContainsFunc(all, func(d Description) bool { return d.Name == m.called() }) {
		return all
	}
	described := Description{Name: m.called(), About: m.about}
	for _, f := range m.fields {
		described.Fields = append(described.Fields, f.describe())
	}
	all = append(all, described)
	for _, f := range m.fields {
		if inner := modelOf(f.of); inner != nil {
			all = inner.describe(all)
		}
	}
	return all
}

// called returns the name of the model's description.
func (m *model) called() string {
	if m.title != "" {
		return m.title
	}
	return m.name
}

func (f field) describe() FieldDescription {
	d := FieldDescription{
		Name: f.name, Since: f.since, Required: f.required, Group: f.group, About: f.about, Example: f.example,
		Given:   f.group == "" && (f.given || f.required || f.absent != nil),
		Ignored: f.ours, Sandbox: f.sandboxOnly, Writers: f.writers.Names(),
	}
	of := f.of
	if k, ok := of.(dropped); ok {
		of, d.Hidden = k.of, f.absent == nil
	}
	if k, ok := of.(list); ok {
		of, d.List = k.of, true
	}
	switch k := of.(type) {
	case *model:
		d.Of = k.called()
	case plain:
		d.Form = k.form
	}
	if f.absent != nil {
		// Default stays "" for an id, because each new object gets a different id. Only a constant is a default.
		d.Default, _ = f.absent(&walk{newID: func() string { return "" }}, nil).(string)
	}
	if _, ok := f.of.(dropped); ok && d.Default != "" {
		d.Form.Shown = schema{"type": "string", "const": d.Default}
	}
	return d
}

// Step is a step from one state to another, with the roles that may take it (docs/contract.md, "States").
type Step struct {
	From, To Status
	By       []Role
}

// Steps returns every step, in the order of an asset's life.
func Steps() []Step {
	var steps []Step
	for _, from := range Statuses {
		for _, to := range Statuses {
			if by := states[from].to[to]; len(by) > 0 {
				steps = append(steps, Step{from, to, by})
			}
		}
	}
	return steps
}

// Writers returns the roles that may change an asset in this state.
func (s Status) Writers() []Role { return states[s].writers }
