package search

import (
	"slices"

	"asset-registry/searchsvc/internal/ukrainian"
)

// Property is a property of assets that a search filters by, and whose values it counts.
type Property struct {
	Name  FacetName // of the facet, and of the parameter of the filter
	About string    // meaning of the filter, for the description of the API

	// Field is the field of the index with the terms of the values. Names is the field with
	// the names of values for people; empty: values have none. Values have terms and names in
	// package index (valuesOf).
	Field, Names string

	// In returns the values of the filter in a question. Nil: there is no filter.
	In func(*Filters) *[]string

	// Term returns the term of a value of the filter. Nil: it is the value.
	Term func(value string) string

	// Levels are the lengths of the values that the facet counts, if they are codes.
	Levels []int

	Values []string // all values of the filter; nil: any
	OnPage bool     // the search page of the site has the facet
	OfSite bool     // only the site has the facet
}

// Properties are all properties, in the order of documents and pages. Parameters, facets,
// columns and terms of the index, its format, the description of the API and the site follow
// from the table.
var Properties = []Property{
	{
		Name: ByStatus, About: "State of the asset.", Field: "s", Values: texts(Statuses), OnPage: true,
		In: func(f *Filters) *[]string { return &f.Statuses },
	},
	{
		Name: ByType, About: "`assetType` of the asset.", Field: "y",
		In: func(f *Filters) *[]string { return &f.Types },
	},
	{
		Name: ByClassification, Field: "c", Names: "cn", Levels: []int{2, 3, 4, 8}, Term: codeTerm, OnPage: true,
		About: "Code of an item, with or without its check digit. A code of a division, group or class " +
			"stands for the codes in it. The first 2 to 8 digits will do.",
		In: func(f *Filters) *[]string { return &f.Classifications },
	},
	{
		Name:  ByRegion,
		About: "Region of an item. Case and words such as область do not count; spellings of one region are one.",
		Field: "r", Names: "rn",
		Term: ukrainian.Region, OnPage: true,
		In: func(f *Filters) *[]string { return &f.Regions },
	},
	{
		Name: ByLocality, About: "Locality of an item. Case and words such as місто do not count.", Field: "l", Names: "ln",
		Term: ukrainian.Place, OnPage: true,
		In: func(f *Filters) *[]string { return &f.Localities },
	},
	{
		Name: ByCustodian, Field: "k", Names: "kn", OnPage: true,
		About: "Scheme and id of the custodian with a hyphen between them: `UA-EDR-00032945`.",
		In:    func(f *Filters) *[]string { return &f.Custodians },
	},
	{
		Name: ByOwner, About: "Broker that owns the asset.", Field: "o",
		In: func(f *Filters) *[]string { return &f.Owners },
	},
	{Name: ByMonth, Field: "m"},
	{Name: ByKyivMonth, Field: "mk", OfSite: true},
}

// PropertyOf returns the property with a name. There is one for each FacetName.
func PropertyOf(name FacetName) Property {
	at := slices.IndexFunc(Properties, func(p Property) bool { return p.Name == name })
	return Properties[at]
}

// ValuesOf returns the values of the filter by a property.
func (f *Filters) ValuesOf(name FacetName) []string {
	if p := PropertyOf(name); p.In != nil {
		return *p.In(f)
	}
	return nil
}

// FacetNames are all facets of the API.
func FacetNames() []FacetName {
	var all []FacetName
	for _, p := range Properties {
		if !p.OfSite {
			all = append(all, p.Name)
		}
	}
	return all
}

// FilterParams returns the parameters that filter, in the order of documents and pages.
func FilterParams() []string {
	var all []string
	for _, p := range Properties {
		if p.In != nil {
			all = append(all, string(p.Name))
		}
	}
	return append(all, publishedFromParam, publishedToParam, modifiedFromParam, modifiedToParam,
		quantityFromParam, quantityToParam)
}

// codeTerm returns the term of the codes that a filter means.
func codeTerm(code string) string {
	prefix, _ := CodePrefix(code)
	return prefix
}

func texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
