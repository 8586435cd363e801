package site

import (
	"maps"
	"slices"
	"strings"

	"asset-registry/searchsvc/internal/codenames"
	schemes "asset-registry/shared/codenames"
	"asset-registry/shared/ukrainian"
)

// Dictionary is a list of values with their names (docs/contract.md, "Dictionaries").
type Dictionary struct {
	ID     string       `json:"id"` // the field that has the values, or the scheme of codes
	Name   string       `json:"name"`
	NameEn string       `json:"name_en"`
	Values []Definition `json:"values"`
}

// Definition is a value with its names. A name in one language may be empty.
type Definition struct {
	Value  string `json:"value"`
	Name   string `json:"name,omitempty"`
	NameEn string `json:"name_en,omitempty"`
}

// Dictionaries returns all lists of values for which pages have names, sorted by id, and then the names of codes.
func Dictionaries(names codenames.Lists) (all []Dictionary) {
	values := map[string][]Definition{}
	for key, t := range words {
		field, value, _ := strings.Cut(key, "/")
		values[field] = append(values[field], Definition{value, t.uk, t.en})
	}
	addUnit := func(code, form string) {
		u := units[code]
		values["unit.code"] = append(values["unit.code"], Definition{form, u.after(Ukrainian, 1), u.after(English, 1)})
	}
	for code := range units {
		if ukrainian.Unit(code) == "" {
			addUnit(code, code)
		}
	}
	ukrainian.EachUnit(addUnit)
	for _, r := range ukrainian.Regions() {
		values["region"] = append(values["region"], Definition{r.Key, r.Uk, r.En})
	}
	for _, field := range slices.Sorted(maps.Keys(values)) {
		list := values[field]
		slices.SortFunc(list, func(a, b Definition) int { return strings.Compare(a.Value, b.Value) })
		of, last, _ := cutLast(field)
		all = append(all, Dictionary{field, said(Ukrainian, of, last), said(English, of, last), list})
	}
	for _, scheme := range schemes.Schemes {
		d := Dictionary{ID: scheme, Name: scheme, NameEn: scheme}
		names.Each(scheme, func(code string, n codenames.Name) {
			d.Values = append(d.Values, Definition{code, n.Uk, n.En})
		})
		if d.Values != nil {
			all = append(all, d)
		}
	}
	return all
}

// said returns what people call the values of a field. If the asset itself does not have the field, the result
// begins with the name of the object that has it.
func said(l Lang, of, field string) string {
	if of == "" {
		return label(l, field)
	}
	return label(l, of) + ": " + label(l, field)
}
