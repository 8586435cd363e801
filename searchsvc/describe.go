package searchsvc

import (
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
)

// Parameters has the allowed values and the limits of the parameters of a search (docs/contract.md, "Search").
type Parameters struct {
	Statuses, Sorts, Facets, Steps   []string // allowed values, in the order in which documents list them
	Units                            []string // units of quantities
	MaxText                          int      // characters of q
	MaxLimit, DefaultLimit           int      // assets on a page
	MaxFacets                        int      // facets in one question
	MaxFacetLimit, DefaultFacetLimit int      // values of one facet
}

// Describe returns the parameters of a search.
func Describe() Parameters {
	return Parameters{
		Statuses: search.Texts(assetfilter.Statuses), Sorts: search.Texts(search.Sorts),
		Facets: search.Texts(search.FacetNames()), Steps: search.Texts(search.Steps), Units: search.Texts(search.Units),
		MaxText: search.MaxText, MaxLimit: search.MaxLimit, DefaultLimit: search.DefaultLimit,
		MaxFacets: search.MaxFacets, MaxFacetLimit: search.MaxFacetLimit, DefaultFacetLimit: search.DefaultFacetLimit,
	}
}
