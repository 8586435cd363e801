package search

import (
	"slices"

	"asset-registry/shared/assetfilter"
)

// Property is a property of assets. Searches can filter by it, and count its values in a facet.
type Property struct {
	Name FacetName // name of the facet, and of the filter

	// Field is the field of the index that has the terms of the values. Names is the field that has the names of
	// the values for people; "" if values have no names.
	Field, Names string

	// In returns a pointer to the filter's values in Filters. Nil: there is no filter by this property.
	In func(*Filters) *[]string

	// Levels are the lengths of the codes that the facet counts. Nil: the values are not codes.
	Levels []int

	OnPage bool // the search page of the site has the facet
	OfSite bool // only the site has the facet; the API does not
}

// Properties are all properties, in the order in which documents and pages list them. The table determines the
// parameters, the facets, the columns and the format of the index, the description of the API, and the site.
// Each property with a filter also has a row in assetfilter.All. This row makes the terms of values and of
// assets.
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

// Filter returns the filter by a property. The property must have a filter: the field In must not be nil.
func (p Property) Filter() assetfilter.Filter { return assetfilter.Of(assetfilter.Name(p.Name)) }

// PropertyOf returns the property with the given name. There is a property for each FacetName.
func PropertyOf(name FacetName) Property {
	at := slices.IndexFunc(Properties, func(p Property) bool { return p.Name == name })
	return Properties[at]
}

// ValuesOf returns the values of the filter by a property. They are nil if the property has no filter.
func (f *Filters) ValuesOf(name FacetName) []string {
	if p := PropertyOf(name); p.In != nil {
		return *p.In(f)
	}
	return nil
}

// FacetNames returns the names of all facets of the API.
func FacetNames() []FacetName {
	var all []FacetName
	for _, p := range Properties {
		if !p.OfSite {
			all = append(all, p.Name)
		}
	}
	return all
}

// FilterParams returns the parameters that are filters, in the order in which documents and pages list them.
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
