package search

import "asset-registry/shared/assetfilter"

// CodeLevel returns how many digits the codes have that the facet of classifications counts. The facet counts
// codes that are one level longer than the longest code in the filter.
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
