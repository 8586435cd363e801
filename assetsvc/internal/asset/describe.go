package asset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Form describes plain values. The OpenAPI documents have the schemas of each kind (deploy/test/openapi/documents).
type Form struct {
	Kind    string
	Pattern string   // form of the texts that clients may send, or of the ids in answers; "": any
	Choices []string // the values that clients may send; nil: any
	Most    int      // maximum number of characters that clients may send; 0: the kind says it
	Only    string   // the value that all answers have; "": they have different ones
}

// sentTime is the form of the timestamps that clients may send (docs/contract.md, "Timestamps").
const sentTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}` +
	`([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2}|:)?)?)?$`

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
		d.Form.Most = k.most
	}
	if f.absent != nil {
		// Default stays "" for an id, because each new object gets a different id. Only a constant is a default.
		d.Default, _ = f.absent(&walk{newID: func() string { return "" }}, nil).(string)
	}
	if _, ok := f.of.(dropped); ok {
		d.Form.Only = d.Default
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
