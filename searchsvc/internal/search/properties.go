package search

import (
	"slices"

	"asset-registry/shared/assetfilter"
)

// Property is a property of assets that a search filters by, and whose values it counts.
type Property struct {
	Name FacetName // of the facet, and of the filter

	// Field is the field of the index with the terms of the values. Names is the field with
	// the names of values for people; empty: values have none.
	Field, Names string

	// In returns the values of the filter in a question. Nil: there is no filter.
	In func(*Filters) *[]string

	// Levels are the lengths of the values that the facet counts, if they are codes.
	Levels []int

	OnPage bool // the search page of the site has the facet
	OfSite bool // only the site has the facet
}

// Properties are all properties, in the order of documents and pages. Parameters, facets,
// columns of the index, its format, the description of the API and the site follow from the
// table. Those with In have a row in assetfilter.All, which has the terms of values and assets.
var Properties = []Property{
	{Name: ByStatus, Field: "s", OnPage: true, In: func(f *Filters) *[]string { return &f.Statuses }},
	{Name: ByType, Field: "y", In: func(f *Filters) *[]string { return &f.Types }},
	{
		Name: ByClassification, Field: "c", Names: "cn", Levels: []int{2, 3, 4, 8}, OnPage: true,
		In: func(f *Filters) *[]string { return &f.Classifications },
	},
	{Name: ByRegion, Field: "r", Names: "rn", OnPage: true, In: func(f *Filters) *[]string { return &f.Regions }},
	{Name: ByLocality, Field: "l", Names: "ln", OnPage: true, In: func(f *Filters) *[]string { return &f.Localities }},
	{Name: ByCustodian, Field: "k", Names: "kn", OnPage: true, In: func(f *Filters) *[]string { return &f.Custodians }},
	{Name: ByOwner, Field: "o", In: func(f *Filters) *[]string { return &f.Owners }},
	{Name: ByMonth, Field: "m"},
	{Name: ByKyivMonth, Field: "mk", OfSite: true},
}

// Filter returns the filter by a property that has In.
func (p Property) Filter() assetfilter.Filter { return assetfilter.Of(assetfilter.Name(p.Name)) }

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
		quantityFromParam, quantityToParam, quantityUnitParam)
}

func texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
