package search

import "asset-registry/shared/assetfilter"

// CodeLevel returns the number of digits of the codes that the facet of classifications counts. It is the next
// level below the longest code in the filter.
func (f Filters) CodeLevel() int {
	longest := 0
	for _, code := range f.Classifications {
		if prefix, ok := assetfilter.CodePrefix(code); ok {
			longest = max(longest, len(prefix))
		}
	}
	levels := PropertyOf(ByClassification).Levels
	for _, level := range levels {
		if level > longest {
			return level
		}
	}
	return levels[len(levels)-1]
}
