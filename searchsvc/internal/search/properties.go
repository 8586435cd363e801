package search

import (
	"maps"
	"slices"

	"asset-registry/shared/assetfilter"
)

// Property is a property of assets. Searches can count its values in a facet, and filter by most properties.
type Property struct {
	assetfilter.Filter
	Name     FacetName // name of the facet, and of the filter
	IsFilter bool
	OfSite   bool // only the site has the facet; the API does not
}

// Properties are all properties, in the order in which documents and pages list them: the filters and the months.
var Properties = properties()

func properties() (all []Property) {
	for _, f := range assetfilter.All {
		all = append(all, Property{Filter: f, Name: FacetName(f.Name), IsFilter: true})
	}
	return append(all,
		Property{Name: ByMonth, Filter: assetfilter.Filter{Field: "m"}},
		Property{Name: ByKyivMonth, Filter: assetfilter.Filter{Field: "mk"}, OfSite: true})
}

// PropertyOf returns the property with the given name. There is a property for each FacetName.
func PropertyOf(name FacetName) Property {
	at := slices.IndexFunc(Properties, func(p Property) bool { return p.Name == name })
	return Properties[at]
}

// ValuesOf returns the values of the filter by a property. They are nil if the property has no filter.
func (f Filters) ValuesOf(name FacetName) []string { return f.Values[name] }

// With returns the filters with other values for a property.
func (f Filters) With(name FacetName, values []string) Filters {
	all := maps.Clone(f.Values)
	delete(all, name)
	if len(values) > 0 {
		if all == nil {
			all = map[FacetName][]string{}
		}
		all[name] = values
	}
	f.Values = all
	return f
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
		if p.IsFilter {
			all = append(all, string(p.Name))
		}
	}
	return append(all, publishedFromParam, publishedToParam, modifiedFromParam, modifiedToParam,
		quantityFromParam, quantityToParam, quantityUnitParam)
}

// Texts returns values as texts.
func Texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
