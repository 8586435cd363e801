package search

import "asset-registry/shared/query"

// Params returns the parameters of a search, in the order in which documents list them.
func Params() []string {
	all := append([]string{textParam, exactParam}, FilterParams()...)
	return append(all, sortParam, limitParam, afterParam, facetsParam, facetLimitParam)
}

// OfSuggestions has the parameters of suggestions: the text and the filters of a search.
var OfSuggestions = query.Params{Names: append(FilterParams(), textParam), Lists: FilterParams()}

// OfAPI has the parameters of a search as programs send them.
var OfAPI = query.Params{Names: Params(), Lists: append(FilterParams(), facetsParam)}
