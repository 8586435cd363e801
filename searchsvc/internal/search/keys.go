package search

import "asset-registry/shared/assetfilter"

// CodeLevel returns the length of the codes that the facet of classifications counts, in digits. The facet counts the
// codes one level below the longest code in the filter. If there is no such level, it counts the longest codes.
func (f Filters) CodeLevel() int {
	longest := 0
	for _, code := range f.Values[ByClassification] {
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
