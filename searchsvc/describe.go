package searchsvc

import "asset-registry/searchsvc/internal/search"

// Parameters has the values and bounds of the parameters of a search (docs/contract.md, "Search").
type Parameters struct {
	Statuses, Sorts, Facets, Steps   []string // values, in the order of documents
	Filters                          []Filter
	MaxText                          int // letters of q
	MaxValue, MaxValues              int // letters of a filter's value, values of a filter
	MaxLimit, DefaultLimit           int // assets of a page
	MaxFacets                        int // facets of a question
	MaxFacetLimit, DefaultFacetLimit int // values of a facet
}

// Filter is a parameter with the values of a property.
type Filter struct {
	Name, About string
	Values      []string // all values; nil: any
	Codes       bool     // values are codes or their beginnings
}

// Describe returns the parameters of a search.
func Describe() Parameters {
	var filters []Filter
	for _, p := range search.Properties {
		if p.In != nil {
			filters = append(filters, Filter{string(p.Name), p.About, p.Values, p.Levels != nil})
		}
	}
	return Parameters{
		Filters:  filters,
		Statuses: texts(search.Statuses), Sorts: texts(search.Sorts), Facets: texts(search.FacetNames()),
		Steps:   texts(search.Steps),
		MaxText: search.MaxText, MaxValue: search.MaxValue, MaxValues: search.MaxValues,
		MaxLimit: search.MaxLimit, DefaultLimit: search.DefaultLimit,
		MaxFacets: search.MaxFacets, MaxFacetLimit: search.MaxFacetLimit, DefaultFacetLimit: search.DefaultFacetLimit,
	}
}

func texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
